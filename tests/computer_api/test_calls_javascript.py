"""Calls of `computer` tools from JavaScript code."""

from __future__ import annotations

from pathlib import Path

import pytest

from example_computer_tool import PNG, CallTester, calls_of, tester

__all__ = ["tester"]

pytestmark = pytest.mark.needs("node")


def test_values_round_trip(tester: CallTester) -> None:
    ran = tester.do(
        """
const assert = require('assert');
const { example } = computer;
for (const value of [null, true, 3, 2.5, 'Zoë ✓', [1, [2]]]) assert.deepStrictEqual(await example.echo(value), value);
assert.deepStrictEqual(await example.echo([{ a: { b: 1 } }]), [{ a: { b: 1 } }]);
assert.deepStrictEqual(await example.echo(1, 2, { a: 3 }), [1, 2, { a: 3 }]);
assert.deepStrictEqual(await example.echo(Buffer.from([0, 255])), Buffer.from([0, 255]));
assert.ok(Number.isNaN(await example.echo(NaN)));
console.log(await example.kind(new Date(0)), await example.width, await example.part.twice(4), computer.example);
await example.show('words');
""",
        "javascript",
    )
    assert ran.stderr == ""
    assert ran.text == "datetime 7 8 computer.example\nwords\n'shown'\n"


def test_a_picture_arrives_as_a_picture(tester: CallTester, tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    ran = tester.do(
        f"const picture = await computer.example.picture(); picture.save({str(path)!r});"
        "console.log(picture, picture.left, await computer.example.kind(picture)); picture",
        "javascript",
    )
    assert ran.stdout == "<Picture 2 x 1> 10 Picture\n"
    assert path.read_bytes() == PNG
    assert len(ran.of_type("image")) == 1


def test_errors_keep_their_type_and_message(tester: CallTester) -> None:
    code = """
for (const call of [() => computer.example.fail('ValueError'), () => computer.example.fail('odd'),
                    () => computer.example.ecko(), () => computer.example.echo(() => 1)]) {
  try { await call(); } catch (error) { console.log(`${error.name}: ${error.message}`); }
}
await computer.example.fail('PermissionError', 'closed');"""
    ran = tester.do(code, "javascript")
    assert ran.stdout.splitlines() == [
        "ValueError: not today",
        "ComputerError: not today",
        "AttributeError: There is no computer.example.ecko. Did you mean computer.example.echo?",
        "TypeError: Can't pass a function to the computer.",
    ]
    assert ran.stderr == "Uncaught PermissionError: closed\n"


def test_calls_can_run_in_parallel(tester: CallTester) -> None:
    code = "console.log(await Promise.all([1, 2, 3].map((each) => computer.example.echo(each))))"
    ran = tester.do(code, "javascript")
    assert ran.text == "[ 1, 2, 3 ]\n"
    assert len(calls_of(ran)) == 3


def test_a_block_waits_for_calls_that_it_did_not_await(tester: CallTester) -> None:
    ran = tester.do("computer.example.echo('late').then(console.log); 0", "javascript")
    assert ran.text == "0\nlate\n"


def test_a_call_from_an_ended_block_is_rejected(tester: CallTester) -> None:
    bound = "const late = require('async_hooks').AsyncResource.bind(() => computer.example.echo(1)); 0"
    tester.do(bound, "javascript")
    ran = tester.do("try { await late() } catch (error) { console.log(error.message) }", "javascript")
    assert "the block that this belongs to has ended" in ran.text


def test_a_user_variable_named_computer_takes_precedence(tester: CallTester) -> None:
    assert tester.do("const computer = 5; console.log(computer)", "javascript").text == "5\n"
    names = {each.name for found in tester.computer.variables().values() for each in found}
    assert names == {"computer"}


def test_computer_is_not_listed_as_a_variable(tester: CallTester) -> None:
    tester.do("await computer.example.width", "javascript")
    assert tester.computer.variables() == {}
