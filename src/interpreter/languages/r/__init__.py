"""R blocks: figures are images, data frames are tables."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from interpreter.languages.program import ProgramLanguage
from interpreter.runtimes import built_in
from interpreter.runtimes.launch import Launch
from interpreter.runtimes.missing_packages import package_names

__all__ = ["R"]

# Installs from the user's repositories, if they have chosen some. R only warns about a failed installation.
INSTALL = """local({{
  dir.create({library}, FALSE, TRUE)
  .libPaths(c({library}, .libPaths()))
  repositories <- getOption("repos")
  if (is.null(repositories) || "@CRAN@" %in% repositories) repositories <- "https://cloud.r-project.org"
  reasons <- character()
  withCallingHandlers(
    utils::install.packages({names}, lib = {library}, repos = repositories, quiet = TRUE),
    warning = function(warned) reasons <<- c(reasons, sub("\\n.*", "", conditionMessage(warned)))
  )
  if (!all({names} %in% list.files({library}))) stop(c(reasons, "not installed")[1], call. = FALSE)
}})"""


class R(built_in.R, ProgramLanguage):
    """R with the variables of earlier blocks."""

    shared_form = "r"
    arguments = ("--no-save", "--no-restore", str(Path(__file__).with_name("driver.R")), "{commands}", "{replies}")
    persistent = True
    installer = "r"

    def launch(self) -> Launch:
        launch = super().launch()
        libraries = [self.context.package_folder("R"), *filter(None, [launch.env.get("R_LIBS")])]
        return replace(launch, env={**launch.env, "R_LIBS": os.pathsep.join(libraries)})

    def installation(self, modules: Sequence[str]) -> tuple[list[str], str, str]:
        names = package_names("r", modules)
        wanted = f"c({', '.join(map(json.dumps, names))})"
        code = INSTALL.format(library=json.dumps(self.context.package_folder("R")), names=wanted)
        return names, f"install2.r {' '.join(names)}", code if names and not self.context.elsewhere else ""
