"""Shell code runs as it was written."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpreter.runtimes.shell.dialect import cut
from shell_runtimes import ShellRuntime, bash, fresh, shell

__all__ = ["bash", "fresh", "shell"]


def test_heredocs_pipes_and_compound_commands(shell: ShellRuntime) -> None:
    code = """
cat <<END
one $((1 + 1))

  two
END
cat <<'END' | tr a-z A-Z
$kept `as` it is
END
for n in 1 2 3; do
  if [ $n = 2 ]; then continue; fi
  echo $n
done | sort -r

# a comment
describe() {

  case $1 in
    a) echo "first" ;;
    *) echo "other" ;;
  esac
}
describe a; describe b
echo one \\
  two
"""
    expected = "one 2\n\n  two\n$KEPT `AS` IT IS\n3\n1\nfirst\nother\none two\n"
    assert shell.do(code).text == expected


@pytest.mark.parametrize(
    "code",
    [
        'echo "never closed',
        "if true; then",
        "echo $(",
        "cat <<END\nno end\nEND )",
        "for do done",
        ")",
        "f() {",
        "'",
    ],
)
def test_a_syntax_error_is_reported_and_keeps_the_state(shell: ShellRuntime, code: str) -> None:
    shell.do("word=kept")
    ran = shell.do("echo before\n" + code)
    assert (ran.text.startswith("before\n") and len(ran.text) > len("before\n")) or "END" in code
    assert ran.ended in ("error", "done")
    assert shell.do("echo $word").text == "kept\n"


def test_errors_name_their_line(bash: ShellRuntime) -> None:
    ran = bash.do("echo one\n\nno_such_program\nif true; then\n  also_missing\nfi")
    assert "line 3: no_such_program" in ran.text and "line 5: also_missing" in ran.text
    assert ran.exit_code == 127


def test_long_code_and_long_lines(shell: ShellRuntime) -> None:
    line = "x" * 5000
    assert shell.do(f"echo {line}").text == line + "\n"
    code = "\n".join(f"v{n}='value {n}'" for n in range(6000)) + "\necho $v4999"
    assert len(code) > 100_000
    assert shell.do(code).text == "value 4999\n"
    shell.do("for ((n = 0; n < 6000; n++)); do unset v$n; done")  # or every later block would be slow


def test_garbage_does_no_harm(shell: ShellRuntime, tmp_path: Path) -> None:
    chance = random.Random(5)
    shell.do(f"word=kept; mkdir -p {tmp_path}; cd {tmp_path}")
    alphabet = [chr(n) for n in range(1, 256) if chr(n) not in "`$()<>|&;/\n"]
    for _ in range(20):
        shell.do("".join(chance.choices(alphabet, k=300)))
    assert shell.do("echo $word").text.endswith("kept\n")


def test_code_may_contain_nul_and_carriage_return(shell: ShellRuntime) -> None:
    assert "a" in shell.do("echo a\0b").text
    assert shell.do("printf '%s' 'a\rb'").text == "a\rb"


def test_empty_and_comment_only_blocks(shell: ShellRuntime) -> None:
    for code in ("", "\n\n", "# nothing", "   "):
        ran = shell.do(code)
        assert (ran.text, ran.ended) == ("", "done")


def test_standard_input_is_empty(shell: ShellRuntime) -> None:
    ran = shell.do("cat; read word; echo status $?; wc -c; python3 -c 'print(input())' 2>&1 | tail -1")
    assert ran.text.split("\n")[:2] == ["status 1", "0"]
    assert "EOFError" in ran.text


def test_return_ends_the_block(shell: ShellRuntime) -> None:
    ran = shell.do("echo one\nreturn 4\necho two")
    assert (ran.text, ran.exit_code) == ("one\n", 4)


def test_the_driver_is_invisible(shell: ShellRuntime) -> None:
    assert "oi_" not in shell.do("ls -l /proc/self/fd; env; echo $0").text.replace("TEST_RUN", "")
    assert shell.do("ls /proc/self/fd").text.split() == ["0", "1", "2", "3"]  # 3 is the folder that ls reads
    ran = shell.do("set -x; echo traced; { set +x; } 2>/dev/null")
    assert "oi_" not in ran.text and "echo traced" in ran.text
    assert shell.do("echo plain").text == "plain\n"


def test_options_and_aliases_do_not_affect_the_driver(fresh: ShellRuntime) -> None:
    fresh.do("set -euf; set -o noclobber; IFS=xyz; alias printf=false trap=false cd=false exec=false read=false")
    fresh.do("word=kept")
    assert fresh.do('echo "$word"; cd_to=/usr; \\cd $cd_to').text == "kept\n"
    assert fresh.context.cwd == "/usr"
    fresh.do("exit 1")
    assert fresh.do('echo "$word"').text == "kept\n"


def test_functions_that_shadow_builtins_do_not_affect_the_driver(bash: ShellRuntime) -> None:
    bash.do("printf() { echo mine; }; trap() { echo mine; }; declare() { echo mine; }; pwd() { echo mine; }; word=kept")
    bash.do("exit 1")
    assert bash.do("echo $word; printf").text == "kept\nmine\n"


# -- active lines -----------------------------------------------------------------------------------------------------


def test_active_lines_are_reported(shell: ShellRuntime) -> None:
    ran = shell.do("echo one\n\n# why\necho two && true\nfor n in 3 4; do\n  echo $n\ndone\necho five")
    assert (ran.lines, ran.text) == ([1, 4, 5], "one\ntwo\n3\n4\nfive\n")
    assert ran.chunks[0]["content"] == 1


def test_lines_that_depend_on_the_previous_one_still_work(bash: ShellRuntime, tmp_path: Path) -> None:
    assert bash.do(f"mkdir {tmp_path}/new\ncd $_\npwd").text == f"{tmp_path}/new\n"
    assert bash.do("false | true\necho ${PIPESTATUS[0]}").text == "1\n"
    assert bash.do("false\necho $?\ntrue\necho $?").text == "1\n0\n"
    assert bash.do("echo a\nexec 2>/dev/null\nno_such_program\necho b").text == "a\nb\n"


def test_an_exit_or_error_in_a_line_ends_the_block(fresh: ShellRuntime) -> None:
    assert fresh.do("echo one\nexit 2\necho two").text == "one\n"
    ran = fresh.do("set -e\necho one\nfalse\necho two")
    assert ran.text == "one\n" and ran.lines == [1, 2, 3]
    fixed = fresh.do("set +e\nreadonly fixed=1\nfixed=2\necho two").text
    assert "fixed" in fixed  # this error ends a sourced file in zsh, but only a line in bash
    assert fixed.endswith("two\n") == (fresh.kind == "bash")


def test_active_lines_can_be_turned_off(bash: ShellRuntime) -> None:
    bash.context.active_lines = False
    assert bash.do("echo one\necho two").lines == []


FRAGMENTS = """echo a|echo 'x|y'|echo "|"|if true; then|fi|cat <<E|E|a \\|{|}|(|)|# c||x=1|echo $x|for i in 1 2; do|done
f() {|true &&|[[ a|&& b ]]|$(|`|#'|b""".replace("\n", "|")
fragments = st.sampled_from(FRAGMENTS.split("|"))


@given(st.lists(fragments, max_size=12))
@settings(max_examples=300)
def test_the_pieces_of_cut_code_make_up_the_block(parts: list[str]) -> None:
    code = "\n".join(parts)
    pieces = cut(code)
    leading = code.split("\n")[: pieces[0][0] - 1]
    assert "\n".join([*leading, *(text for _, text in pieces)]) == code
    assert all(line.strip()[:1] in ("", "#") for line in leading)


def test_cut_code_behaves_like_the_whole_block(bash: ShellRuntime) -> None:
    chance = random.Random(11)
    parts = [
        "echo a",
        "echo 'x",
        "y'",
        'echo "p',
        'q"',
        "if true; then",
        "fi",
        "cat <<E",
        "E",
        "echo m \\",
        "true |",
    ]
    parts += [
        "cat",
        "{",
        "}",
        "(",
        ")",
        "# c",
        "",
        "x=1",
        "echo $x",
        "for i in 1 2; do",
        "done",
        "false",
        "echo $?",
    ]
    for _ in range(60):
        code = "\n".join(chance.choices(parts, k=6))
        results = []
        for bash.context.active_lines in (True, False):
            bash.do("x=")
            ran = bash.do(code)
            results.append((without_file_names(ran.text), ran.exit_code))
        assert results[0] == results[1], code


def without_file_names(text: str) -> list[str]:
    """The lines without the file name, which differs for each piece."""
    return [line.partition(": ")[2] if "/block" in line else line for line in text.splitlines()]
