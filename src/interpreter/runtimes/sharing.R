# Defines `share("df")` for the driver of an R runtime and for Jupyter kernels, which each provide `send(name, json)`.

what_can <- "Data frames, texts, numbers, logicals, NULL, dates, and vectors and lists of these can be shared."
quoted <- function(text) {
  text <- gsub("\\", "\\\\", enc2utf8(as.character(text)), fixed = TRUE)
  text <- gsub("\"", "\\\"", text, fixed = TRUE)
  for (pair in list(c("\n", "\\n"), c("\r", "\\r"), c("\t", "\\t"))) text <- gsub(pair[1], pair[2], text, fixed = TRUE)
  paste0("\"", gsub("[\\x01-\\x1f]", " ", text, perl = TRUE), "\"")
}
type_of <- function(value) {
  if (inherits(value, "POSIXt")) "datetime"
  else if (inherits(value, "Date")) "date"
  else if (is.factor(value) || is.character(value)) "string"
  else if (is.logical(value)) "boolean"
  else if (is.integer(value)) "integer"
  else if (is.numeric(value)) "number"
  else NULL
}
cells_of <- function(value) {
  cells <- switch(type_of(value),
    datetime = quoted(format(as.POSIXct(value), "%Y-%m-%dT%H:%M:%OS3+00:00", tz = "UTC")),
    date = quoted(format(value, "%Y-%m-%d")),
    string = quoted(value),
    boolean = tolower(as.character(value)),
    format(value, digits = 17, trim = TRUE, scientific = NA)
  )
  cells[if (is.numeric(value)) !is.finite(value) else is.na(value)] <- "null"
  cells
}
json_of <- function(value, name) {
  if (is.null(value)) return("null")
  if (is.list(value) && !is.object(value)) {
    parts <- vapply(value, json_of, "", name = name, USE.NAMES = FALSE)
    if (is.null(names(value))) return(paste0("[", paste(parts, collapse = ","), "]"))
    return(paste0("{", paste0(quoted(names(value)), ":", parts, collapse = ","), "}"))
  }
  if (is.null(type_of(value)) || !is.null(dim(value))) {
    stop(name, " can't be shared: it has a ", class(value)[1], ". ", what_can, call. = FALSE)
  }
  cells <- cells_of(value)
  if (!is.null(names(value))) return(paste0("{", paste0(quoted(names(value)), ":", cells, collapse = ","), "}"))
  if (length(cells) == 1) cells else paste0("[", paste(cells, collapse = ","), "]")
}
table_json <- function(table, name) {
  columns <- vapply(names(table), function(label) {
    column <- table[[label]]
    if (is.null(type_of(column)) || !is.null(dim(column))) {
      stop(name, " can't be shared: its column ", label, " is a ", class(column)[1], ". ", what_can, call. = FALSE)
    }
    paste0("{\"name\":", quoted(label), ",\"type\":\"", type_of(column), "\",\"values\":[",
           paste(cells_of(column), collapse = ","), "]}")
  }, "")
  paste0("{\"table\":[", paste(columns, collapse = ","), "]}")
}
share <- function(...) {
  values <- list(...)
  labels <- names(values)
  for (at in seq_along(values)) {
    is_name <- is.null(labels) || labels[at] == ""
    name <- if (is_name) values[[at]] else labels[at]
    value <- if (is_name) get(name, envir = globalenv()) else values[[at]]
    json <- if (is.data.frame(value)) table_json(as.data.frame(value), name) else paste0("{\"value\":", json_of(value, name), "}")
    send(name, json)
  }
  invisible()
}
