"""What JavaScript code gets when it calls the computer's tools by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from gadget import PNG, Desk, calls_of, desk

__all__ = ["desk"]

pytestmark = pytest.mark.needs("node")


def test_values_go_there_and_come_back(desk: Desk) -> None:
    ran = desk.do(
        """
const assert = require('assert');
const { gadget } = computer;
for (const value of [null, true, 3, 2.5, 'Zoë ✓', [1, [2]]]) assert.deepStrictEqual(await gadget.echo(value), value);
assert.deepStrictEqual(await gadget.echo([{ a: { b: 1 } }]), [{ a: { b: 1 } }]);
assert.deepStrictEqual(await gadget.echo(1, 2, { a: 3 }), [1, 2, { a: 3 }]);
assert.deepStrictEqual(await gadget.echo(Buffer.from([0, 255])), Buffer.from([0, 255]));
assert.ok(Number.isNaN(await gadget.echo(NaN)));
console.log(await gadget.kind(new Date(0)), await gadget.width, await gadget.part.twice(4), computer.gadget);
await gadget.show('words');
""",
        "javascript",
    )
    assert ran.stderr == ""
    assert ran.text == "datetime 7 8 computer.gadget\nwords\n'shown'\n"


def test_a_picture_arrives_as_one(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    ran = desk.do(
        f"const picture = await computer.gadget.picture(); picture.save({str(path)!r});"
        "console.log(picture, picture.left, await computer.gadget.kind(picture)); picture",
        "javascript",
    )
    assert ran.stdout == "<Picture 2 x 1> 10 Picture\n"
    assert path.read_bytes() == PNG
    assert len(ran.of_type("image")) == 1


def test_errors_have_their_names_and_the_tools_words(desk: Desk) -> None:
    code = """
for (const call of [() => computer.gadget.fail('ValueError'), () => computer.gadget.fail('odd'),
                    () => computer.gadget.ecko(), () => computer.gadget.echo(() => 1)]) {
  try { await call(); } catch (error) { console.log(`${error.name}: ${error.message}`); }
}
await computer.gadget.fail('PermissionError', 'closed');"""
    ran = desk.do(code, "javascript")
    assert ran.stdout.splitlines() == [
        "ValueError: not today",
        "ComputerError: not today",
        "AttributeError: There is no computer.gadget.ecko. Did you mean computer.gadget.echo?",
        "TypeError: Can't pass a function to the computer.",
    ]
    assert ran.stderr == "Uncaught PermissionError: closed\n"


def test_several_calls_at_once(desk: Desk) -> None:
    code = "console.log(await Promise.all([1, 2, 3].map((each) => computer.gadget.echo(each))))"
    ran = desk.do(code, "javascript")
    assert ran.text == "[ 1, 2, 3 ]\n"
    assert len(calls_of(ran)) == 3


def test_a_block_waits_for_a_call_that_it_did_not_await(desk: Desk) -> None:
    ran = desk.do("computer.gadget.echo('late').then(console.log); 0", "javascript")
    assert ran.text == "0\nlate\n"


def test_a_call_of_a_block_that_is_over_is_rejected(desk: Desk) -> None:
    bound = "const late = require('async_hooks').AsyncResource.bind(() => computer.gadget.echo(1)); 0"
    desk.do(bound, "javascript")
    ran = desk.do("try { await late() } catch (error) { console.log(error.message) }", "javascript")
    assert "the block that this belongs to has ended" in ran.text


def test_what_the_user_calls_computer_comes_first(desk: Desk) -> None:
    assert desk.do("const computer = 5; console.log(computer)", "javascript").text == "5\n"
    names = {each.name for found in desk.computer.variables().values() for each in found}
    assert names == {"computer"}


def test_it_is_no_variable_of_the_users(desk: Desk) -> None:
    desk.do("await computer.gadget.width", "javascript")
    assert desk.computer.variables() == {}
