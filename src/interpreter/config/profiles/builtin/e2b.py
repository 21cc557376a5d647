"""Python runs in a sandbox at E2B, not on this machine. Needs E2B_API_KEY and: pip install e2b-code-interpreter"""

from interpreter import BaseLanguage, interpreter


class PythonE2B(BaseLanguage):
    """Python in a sandbox on another machine, which keeps its variables as long as this program runs."""

    name = "Python"
    aliases = ("py",)
    file_extension = "py"
    analysis = "interpreter.policy.analysis.python:analyze"
    system_message = "Python runs in a sandbox on another machine: the user's files are not there."

    def __init__(self):
        self._sandbox = None

    def run(self, code):
        from e2b_code_interpreter import Sandbox

        if self._sandbox is None:
            self._sandbox = Sandbox.create()
        done = self._sandbox.run_code(code)
        for name, lines in (("stdout", done.logs.stdout), ("stderr", done.logs.stderr)):
            for text in lines:
                yield {"type": "console", "format": "output", "content": text, "stream": name}
        for result in done.results:
            if result.png:
                yield {"type": "image", "format": "base64.png", "content": result.png}
            elif result.text:
                yield {"type": "console", "format": "output", "content": f"{result.text}\n"}
        if done.error:
            yield {"type": "console", "format": "output", "content": done.error.traceback, "stream": "stderr"}

    def stop(self):
        """Do nothing: a block in the sandbox ends on its own."""

    def terminate(self):
        if self._sandbox is not None:
            self._sandbox.kill()
            self._sandbox = None


interpreter.computer.languages = [PythonE2B]
