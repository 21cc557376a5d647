"""Seconds for the first block of a language, and the median of the later ones."""

import json
import statistics
import time

from common import ARGUMENTS, report

from interpreter import interpreter

CODE = {
    "python": "1 + 1",
    "shell": "echo 2",
    "javascript": "console.log(2)",
    "r": "cat(2)",
    "ruby": "puts 2",
    "fish": "echo 2",
    "java": "System.out.println(2);",
    "html": "<script>console.log(2)</script>",
    "sql": "SELECT 1 + 1 AS n",
}[ARGUMENTS["language"]]


def run():
    began = time.perf_counter()
    output = [
        chunk["content"]
        for chunk in interpreter.computer.run(ARGUMENTS["language"], CODE, stream=True)
        if chunk.get("format") == "output"
    ]
    # The original's JavaScript also prints its prompts.
    assert "".join(output).strip().endswith("2"), output
    return time.perf_counter() - began


if ARGUMENTS.get("stack"):  # as many packages as the data stack has, with nothing in them
    from interpreter.runtimes.data_stack import agree, stack_folder

    agree(True)
    for number in range(40):
        package = stack_folder() / "packages" / f"package_{number}"
        (package.parent / f"{package.name}-1.0.dist-info").mkdir(parents=True)
        package.mkdir()
        (package / "__init__.py").touch()
    (package.parent / ".complete").write_text(json.dumps({"requirements": []}))

cold = run()
warm = statistics.median(run() for _ in range(ARGUMENTS["repeats"]))
interpreter.computer.terminate()
report(cold=cold, warm=warm)
