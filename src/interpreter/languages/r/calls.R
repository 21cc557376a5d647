# Lists the calls in the R code on standard input, for r.py. It parses the code and evaluates nothing of it.
#
# Records end with \x1e, their fields with \x1f, the parts of a field with \x1d; \x01 stands for text that is not known.
#   own NAME FIRST LAST        a function that the code defines, with its lines; for other names without lines
#   call LINE NAME PACKAGE ARGUMENT ...
#   name LINE NAME CALLER ARGUMENT ...   a name that is handed on to CALLER, and the other arguments
#   other LINE WHY NAME        a call of something that is only known when it runs; NAME gives it
# An argument is its name, its kind (symbol, string, function, call or other), the called function, and its texts.

hole <- "\001"
once <- new.env() # what a name stands for, each time that it is set
left <- 20000 # expressions whose texts are looked for: they can stand for each other
parameters <- character()

record <- function(...) cat(paste(c(...), collapse = "\x1f"), "\x1e", sep = "")
is_blank <- function(e, at) is.symbol(e[[at]]) && !nzchar(as.character(e[[at]]))
named <- function(e) {
  # The name and the package of the function that is called; no name for a computed one.
  if (is.symbol(e)) return(c(as.character(e), ""))
  if (is.character(e)) return(c(e, ""))
  if (is.call(e) && identical(e[[1]], quote(`::`))) return(c(as.character(e[[3]]), as.character(e[[2]])))
  c("", "")
}
called <- function(e) if (is.call(e)) named(e[[1]])[1] else ""

piped <- function(e) {
  # `x %>% f(y)` as `f(x, y)`, as the parser does with `|>`.
  if (is.pairlist(e) || is.expression(e)) {
    for (at in seq_along(e)) if (!is_blank(e, at) && !is.null(e[[at]])) e[[at]] <- piped(e[[at]])
    return(e)
  }
  if (!is.call(e)) return(e)
  for (at in seq_along(e)) if (!is_blank(e, at) && !is.null(e[[at]]) && !inherits(e[[at]], "srcref")) e[[at]] <- piped(e[[at]])
  if (called(e) %in% c("%>%", "%<>%", "%T>%") && length(e) == 3) {
    right <- e[[3]]
    if (is.symbol(right)) return(as.call(list(right, e[[2]])))
    if (is.call(right) && !called(right) %in% c("{", "(", "function", "$", "[[", "::")) {
      dots <- which(vapply(seq_along(right), function(at) identical(right[[at]], quote(.)), NA))
      if (length(dots)) for (at in dots) right[[at]] <- e[[2]]
      else right <- as.call(append(as.list(right), list(e[[2]]), 1))
      return(right)
    }
  }
  e
}

collect <- function(e) {
  # Fill `once` and `parameters`, and tell the names.
  if (is.pairlist(e)) parameters <<- c(parameters, names(e))
  if (is.call(e) && called(e) %in% c("<-", "<<-", "=", "assign", "for") && length(e) > 2) {
    target <- e[[2]]
    value <- e[[3]]
    is_name <- is.symbol(target) || is.character(target)
    name <- if (is_name) as.character(target) else if (called(target) %in% c("$", "@")) as.character(target[[3]])[1] else ""
    if (nzchar(name)) {
      is_function <- called(value) == "function"
      lines <- if (is_function && inherits(value[[4]], "srcref")) as.integer(value[[4]])[c(1, 3)] else c("", "")
      record("own", name, lines)
      if (is_name) once[[name]] <- c(once[[name]], list(value))
    }
  }
  if (is.call(e) && length(names(e))) {
    for (at in which(nzchar(names(e)))) if (called(e[[at]]) == "function") record("own", names(e)[at], "", "")
  }
  if (is.call(e) || is.pairlist(e) || is.expression(e))
    for (at in seq_along(e)) if (!is_blank(e, at) && !is.null(e[[at]])) collect(e[[at]])
}

texts <- function(e, depth = 0) {
  # The texts that an expression may give.
  left <<- left - 1
  if (depth > 12 || left < 0) return(hole)
  if (is.character(e)) return(ifelse(is.na(e), hole, e))
  if (is.numeric(e) || is.logical(e)) return(as.character(e))
  if (is.symbol(e)) {
    values <- once[[as.character(e)]]
    return(if (length(values) == 1 && !as.character(e) %in% parameters) texts(values[[1]], depth + 1) else hole)
  }
  if (!is.call(e)) return(hole)
  plain <- as.list(e)[-1]
  for (at in which(vapply(seq_along(plain), function(at) is_blank(plain, at), NA))) plain[[at]] <- quote(x[]) # of `x[1, ]`
  labels <- if (length(names(e))) names(e)[-1] else character(length(plain))
  given <- lapply(plain[!nzchar(labels)], texts, depth + 1)
  option <- function(name, default) if (name %in% labels) texts(plain[[match(name, labels)]])[1] else default
  first <- if (length(given)) given[[1]] else hole
  join <- function(by) if (length(given)) do.call(paste, c(given, sep = by)) else ""
  found <- switch(called(e),
    c = as.character(unlist(lapply(plain, texts, depth + 1))),
    file.path = , here = , path = join("/"),
    paste0 = , str_c = join(option("sep", "")),
    paste = join(option("sep", " ")),
    sprintf = gsub("%[^a-zA-Z%]*[a-zA-Z]", hole, first),
    glue = , str_glue = gsub("\\{[^}]*\\}", hole, first),
    normalizePath = , path.expand = , as.character = , trimws = , toString = , I = , path_abs = , invisible = first,
    tempfile = , tempdir = , file_temp = paste0("/tmp/", hole),
    basename = paste0("./", hole),
    list.files = , dir = , dir_ls = , list.dirs = paste0(if (option("full.names", "FALSE") %in% c("FALSE", "F")) "./" else paste0(first, "/"), "*"),
    Sys.glob = first,
    Sys.getenv = if (identical(first, "HOME")) "~" else hole,
    hole)
  if (length(found) > 1000) hole else found
}

argument <- function(e, name) {
  kind <- if (is.symbol(e)) "symbol" else if (is.character(e)) "string" else if (called(e) == "function") "function" else if (is.call(e)) "call" else "other"
  inner <- e
  if (is.symbol(e) && length(once[[as.character(e)]]) == 1) inner <- once[[as.character(e)]][[1]]
  maker <- if (is.symbol(e) && called(inner) == "") as.character(e) else called(inner)
  paste(c(name, kind, maker, gsub("[\x1d-\x1f]", hole, texts(e))), collapse = "\x1d")
}
arguments <- function(e) {
  labels <- if (length(names(e))) names(e) else character(length(e))
  at <- setdiff(seq_along(e), c(1, which(vapply(seq_along(e), function(at) is_blank(e, at), NA))))
  vapply(at, function(at) argument(e[[at]], labels[at]), "")
}

depth <- 0 # of what may run any number of times, or not at all
look <- function(e, line) {
  if (is.pairlist(e) || is.expression(e)) {
    for (at in seq_along(e)) if (!is_blank(e, at)) look(e[[at]], line)
    return(invisible())
  }
  if (is.symbol(e)) return(record("name", line, as.character(e), "function"))
  if (!is.call(e)) return(invisible())
  name <- named(e[[1]])
  if (name[1] %in% c("::", ":::")) {
    if (name[1] == ":::") record("other", line, "an internal function of a package", "")
    else record("name", line, as.character(e[[3]]), "::")
    return(invisible())
  }
  if (name[1] == "function") {
    depth <<- depth + 1
    on.exit(depth <<- depth - 1)
    look(e[[2]], line)
    return(look(e[[3]], line))
  }
  if (nzchar(name[1])) {
    given <- arguments(e)
    if (name[1] == "setwd" && depth > 0) given <- paste("", "other", "", hole, sep = "\x1d")
    record("call", line, name, given)
  } else {
    head <- e[[1]]
    is_literal <- called(head) == "(" && called(head[[2]]) == "function"
    if (called(head) == "$") record("call", line, as.character(head[[3]])[1], "$")
    else if (!is_literal && called(head) != ":::") record("other", line, "a call of a function that is only known at run time", called(head))
    look(head, line)
  }
  if (name[1] %in% c("$", "@")) return(look(e[[2]], line))
  if (called(e) == "for") e[[2]] <- NULL
  places <- attr(e, "srcref")
  if (!name[1] %in% c("{", "(", "<-", "=", "invisible")) {
    depth <<- depth + 1
    on.exit(depth <<- depth - 1)
  }
  for (at in seq_along(e)[-1]) {
    if (is_blank(e, at) || is.null(e[[at]])) next
    if (name[1] == "{" && length(places) >= at) line <- as.integer(places[[at]])[1]
    is_target <- at == 2 && name[1] %in% c("<-", "<<-", "=")
    if (is.symbol(e[[at]]) && !is_target) record("name", line, as.character(e[[at]]), name[1], arguments(e[-at]))
    else look(e[[at]], line)
  }
}

code <- readLines(file("stdin"), encoding = "UTF-8", warn = FALSE)
tree <- parse(text = code, keep.source = TRUE)
lines <- vapply(attr(tree, "srcref"), function(place) as.integer(place)[1], 1L)
tree <- piped(tree)
collect(tree)
for (name in unique(parameters)) record("own", name, "", "")
for (at in seq_along(tree)) look(tree[[at]], lines[at])
record("end")
