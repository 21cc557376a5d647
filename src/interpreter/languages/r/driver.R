# The driver of an R runtime: `Rscript driver.R COMMANDS REPLIES`. Blocks run in the global environment.

local({
  paths <- commandArgs(trailingOnly = TRUE)
  commands <- file(paths[1], "r", encoding = "UTF-8")
  replies <- file(paths[2], "w", encoding = "UTF-8")
  folder <- NULL
  count <- 0
  most_rows <- 1000

  say <- function(...) {
    flush(stdout())
    cat(..., "\n", file = replies, sep = "")
    flush(replies)
  }
  text_of <- function(path) {
    text <- readChar(path, file.size(path), useBytes = TRUE)
    Encoding(text) <- "UTF-8"
    text
  }
  write_text <- function(text, extension) {
    count <<- count + 1
    path <- file.path(folder, sprintf("shown-%d.%s", count, extension))
    connection <- file(path, "wb")
    writeBin(charToRaw(enc2utf8(paste(text, collapse = "\n"))), connection)
    close(connection)
    path
  }

  # -- tables and figures --

  escaped <- function(text) {
    for (pair in list(c("&", "&amp;"), c("<", "&lt;"), c(">", "&gt;"))) text <- gsub(pair[1], pair[2], text, fixed = TRUE)
    text
  }
  row_of <- function(cells, tag) paste0("<", tag, ">", escaped(cells), "</", tag, ">", collapse = "")
  show_table <- function(value) {
    plain <- capture.output(print(value))
    shown <- utils::head(as.data.frame(value), most_rows)
    cells <- lapply(shown, function(column) as.character(format(column)))
    head <- row_of(c("", names(shown)), "th")
    body <- vapply(seq_len(nrow(shown)), function(at) {
      values <- vapply(cells, function(column) column[[at]], "")
      paste0("<tr><th>", escaped(rownames(shown)[at]), "</th>", row_of(values, "td"), "</tr>")
    }, "")
    page <- paste0("<table><thead><tr>", head, "</tr></thead><tbody>", paste(body, collapse = ""), "</tbody></table>")
    if (nrow(value) > most_rows) page <- paste0(page, "<p>", nrow(value), " rows</p>")
    say("display text/plain ", write_text(plain, "txt"), " text/html ", write_text(page, "html"))
  }
  show <- function(value) {
    if (is.data.frame(value) && nrow(value) > 0 && ncol(value) > 0) show_table(value)
    else if (isS4(value)) methods::show(value)
    else print(value)
  }
  open_figure <- function(...) {
    type <- if (capabilities("cairo")) "cairo" else getOption("bitmapType")
    grDevices::png(file.path(folder, "figure-%04d.png"), width = 1400, height = 1000, res = 200, type = type)
    grDevices::dev.control("enable")
  }
  show_figures <- function() {
    grDevices::graphics.off()
    for (path in sort(list.files(folder, "^figure-[0-9]+[.]png$", full.names = TRUE))) say("display image/png ", path)
  }

  # -- values shared with other languages --

  send <- function(name, json) say("share ", name, " ", write_text(json, "json"))
  script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE)[1])
  source(file.path(dirname(script), "..", "..", "runtimes", "sharing.R"), local = TRUE, encoding = "UTF-8")

  # -- input --

  ask <- function(prompt = "") {
    say("input ", gsub("\n", " ", prompt, fixed = TRUE))
    line <- readLines(commands, n = 1)
    if (length(line) && startsWith(line, "input ")) text_of(substring(line, 7)) else NULL
  }
  own <- list(
    share = share,
    readline = function(prompt = "") {
      answer <- ask(prompt)
      if (is.null(answer)) "" else answer
    },
    readLines = function(con = stdin(), n = -1L, ...) {
      from_user <- identical(con, "stdin") || (inherits(con, "connection") && summary(con)$description == "stdin")
      if (!from_user) return(base::readLines(con, n, ...))
      lines <- character()
      while ((n < 0 || length(lines) < n) && !is.null(line <- ask())) lines <- c(lines, line)
      lines
    }
  )
  attach(own, name = "interpreter", warn.conflicts = FALSE)

  # -- blocks --

  run <- function(path) {
    folder <<- dirname(path)
    status <- "ok"
    code <- 0
    tryCatch(
      {
        for (part in parse(text = text_of(path), keep.source = FALSE, encoding = "UTF-8")) {
          done <- withVisible(eval(part, globalenv()))
          if (done$visible) show(done$value)
        }
        show_figures()
      },
      error = function(error) {
        status <<- "error"
        code <<- 1
        if (inherits(error, "packageNotFoundError")) say("missing ", error$package[1])
        call <- conditionCall(error)
        ours <- is.null(call) || identical(call[[1]], quote(eval)) || identical(call[[1]], quote(parse))
        where <- if (ours) "Error: " else paste0("Error in ", deparse(call, nlines = 1)[1], " : ")
        cat(where, conditionMessage(error), "\n", file = stderr(), sep = "")
        try(show_figures(), silent = TRUE)
      },
      interrupt = function(interrupt) {
        status <<- "interrupted"
        code <<- 130
        grDevices::graphics.off()
      }
    )
    while (sink.number() > 0) sink()
    say("done ", status, " ", code, " ", getwd())
  }
  obey <- function(line) {
    word <- sub(" .*", "", line)
    rest <- substring(line, nchar(word) + 2)
    if (word == "run") run(rest)
    else if (word == "cd") tryCatch(setwd(rest), error = function(error) message(conditionMessage(error)))
    else if (word == "unset") Sys.unsetenv(rest)
    else if (word == "share") {
      name <- sub(" .*", "", rest)
      text <- text_of(substring(rest, nchar(name) + 2))
      tryCatch(assign(name, eval(parse(text = text, encoding = "UTF-8")), globalenv()), error = function(error) {
        message(name, ", which another language shares, could not be set: ", conditionMessage(error))
      })
    }
    else if (word == "env") {
      name <- sub(" .*", "", rest)
      do.call(Sys.setenv, stats::setNames(list(text_of(substring(rest, nchar(name) + 2))), name))
    }
  }

  options(device = open_figure, warn = 1, width = 100, menu.graphics = FALSE, keep.source = FALSE)
  say("ready")
  repeat {
    tryCatch(
      {
        line <- readLines(commands, n = 1)
        if (!length(line)) quit(save = "no")
        obey(line)
      },
      interrupt = function(interrupt) NULL
    )
  }
})
