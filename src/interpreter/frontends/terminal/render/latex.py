"""Simple LaTeX in a model's text, as readable Unicode: symbols, fractions, roots, sub- and superscripts.

A formula with anything else stays as the model wrote it.
"""

from __future__ import annotations

import re

_FORMULA = re.compile(
    r"(?P<code>(?<!`)(?P<ticks>`+)(?!`).{1,1000}?(?<!`)(?P=ticks)(?!`))|\$\$(?P<a>.{1,1000}?)\$\$"
    r"|\\\[(?P<b>.{1,1000}?)\\\]|\\\((?P<c>.{1,1000}?)\\\)"
    r"|(?<![\w$\\])\$(?=[^\s$])(?P<d>[^$\n]{0,1000}?)(?<=[^\s\\])\$(?![\d\w$])",
    re.DOTALL,
)
_MAX_TEXT_LENGTH = 10_000  # characters that are searched
_MATH = re.compile(r"[\\^_=]|\A\s*\w{1,3}\s*\Z")  # formulas match this; other brackets are text
_SYMBOLS = dict(
    pair.split(":", 1)
    for pair in (
        "alpha:α beta:β gamma:γ delta:δ epsilon:ε varepsilon:ε zeta:ζ eta:η theta:θ iota:ι kappa:κ lambda:λ mu:μ nu:ν "
        "xi:ξ pi:π rho:ρ sigma:σ tau:τ upsilon:υ phi:φ varphi:φ chi:χ psi:ψ omega:ω Gamma:Γ Delta:Δ Theta:Θ Lambda:Λ "
        "Xi:Ξ Pi:Π Sigma:Σ Phi:Φ Psi:Ψ Omega:Ω times:× cdot:· div:÷ pm:± mp:∓ leq:≤ le:≤ geq:≥ ge:≥ neq:≠ ne:≠ "
        "approx:≈ sim:∼ equiv:≡ propto:∝ infty:∞ sum:∑ prod:∏ int:∫ partial:∂ nabla:∇ in:∈ notin:∉ subset:⊂ "
        "subseteq:⊆ cup:∪ cap:∩ emptyset:∅ forall:∀ exists:∃ neg:¬ land:∧ lor:∨ to:→ rightarrow:→ leftarrow:← "
        "Rightarrow:⇒ Leftrightarrow:⇔ implies:⇒ iff:⇔ mapsto:↦ ldots:… dots:… cdots:⋯ circ:° degree:° prime:′ ell:ℓ "
        "hbar:ℏ ast:∗ star:⋆ mid:| angle:∠ perp:⊥ parallel:∥ log:log ln:ln exp:exp sin:sin cos:cos tan:tan max:max "
        "min:min lim:lim left: right: big: Big: quad:  qquad: "
    ).split(" ")
    if ":" in pair
)
_PUNCTUATION = {",": " ", ";": " ", ":": " ", "!": "", " ": " ", "%": "%", "$": "$", "#": "#", "&": "&", "_": "_"}
_PUNCTUATION |= {"{": "{", "}": "}", "|": "‖"}
_RAISED = dict(zip("0123456789+-−=()nia*′", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱᵃ*′", strict=True)) | dict(
    zip("Tkxytjm", "ᵀᵏˣʸᵗʲᵐ", strict=True)
)
_LOWERED = dict(zip("0123456789+-−=()aeijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_GROUP = r"\{([^{}]*)\}"
_MARKUP = re.compile(r"([*_`\[\]<~\\])")


def readable(text: str) -> str:
    """Turn the simple formulas in Markdown into Unicode; code stays as it is."""
    if ("$" not in text and "\\" not in text) or len(text) > _MAX_TEXT_LENGTH:
        return text
    return _FORMULA.sub(_unicode, text)


def _unicode(match: re.Match[str]) -> str:
    """Turn a formula into plain text; what is none, or has an unknown command, stays as it is."""
    formula = match["a"] or match["b"] or match["c"] or match["d"] or ""
    if formula.isdigit() or not _MATH.search(formula):
        return match[0]
    text = re.sub(r"\\([,;:! %$#&_{}|])", lambda found: _PUNCTUATION[found[1]].translate(_HIDE), formula)
    for _ in range(10):  # from the inside out
        before = text
        text = re.sub(r"\\(?:text|mathrm|mathbf|mathit|operatorname)\s*" + _GROUP, r"\1", text)
        fraction = r"\\[dt]?frac\s*" + _GROUP + r"\s*" + _GROUP
        text = re.sub(fraction, lambda found: f"{_wrapped(found[1])}/{_wrapped(found[2])}", text)
        text = re.sub(r"\\sqrt\s*" + _GROUP, lambda found: f"√{_wrapped(found[1])}", text)
        text = re.sub(r"([\^_])(?:" + _GROUP + r"|([^\s\\{}]))", _script, text)
        text = re.sub(r"\\([A-Za-z]+)", lambda found: _SYMBOLS.get(found[1], found[0]), text)
        if text == before:
            break
    if re.search(r"[\\{}]", text):
        return match[0]
    return _MARKUP.sub(r"\\\1", " ".join(text.translate(_SHOW).split()))


_HIDE = {ord(sign): 0xE000 + number for number, sign in enumerate("{}_$")}  # private characters, while braces are read
_SHOW = {hidden: sign for sign, hidden in _HIDE.items()} | {0xE010: "^", 0xE011: "_"}


def _wrapped(text: str) -> str:
    return text if re.fullmatch(r"[\w.]+", text) else f"({text})"


def _script(found: re.Match[str]) -> str:
    """Write sub- or superscripts as small characters if Unicode has them all."""
    signs, text = (_RAISED if found[1] == "^" else _LOWERED), found[2] if found[2] is not None else found[3]
    if "\\" in text:
        return found[0]  # symbols first
    if all(sign in signs for sign in text):
        return "".join(signs[sign] for sign in text)
    return ("\ue010" if found[1] == "^" else "\ue011") + _wrapped(text)
