// Reads a page. Playwright runs it as a selector engine in a separate world, which the page's scripts cannot reach
// or change. `e5` selects an element by its ref; a command in base64 selects an element outside of any document,
// whose text is the answer as JSON.
(() => {
  const INLINE = new Set("a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark output q s samp small span strike strong sub sup time tt u var wbr input select textarea button br math".split(" "));
  const SKIPPED = new Set("script style noscript template head svg canvas iframe object embed audio video map link meta param source track datalist option optgroup".split(" "));
  const MASK = "•••";
  const MAX_NAME_LENGTH = 200;
  const MAX_UNSEEN_NAME_LENGTH = 100;
  const MAX_ROWS = 200000;
  const MAX_OPTIONS = 30;
  const MAX_SEARCHED = 20000; // elements, for shadow roots

  // -- the tree, with what is in shadow roots ---------------------------------------------------------------------------

  // Filled from outside with closed roots, which no script can see.
  const rootOf = element => element.shadowRoot || (globalThis.closedRoots && globalThis.closedRoots.get(element)) || null;
  const inside = element => {
    const root = rootOf(element);
    if (root) return root.childNodes;
    if (element.localName === "slot" && element.assignedNodes().length) return element.assignedNodes();
    return element.childNodes;
  };
  const isInline = element => {
    if (element.localName === "math") return true;
    if (INLINE.has(element.localName) && !holdsBlocks(element)) return true;
    if (element.localName.includes("-") || element.localName === "slot") return !holdsBlocks(element);
    return false;
  };
  const holdsBlocks = element => {
    for (const child of inside(element)) {
      if (child.nodeType === 1 && !SKIPPED.has(child.localName) && !isInline(child)) return true;
    }
    return false;
  };
  const squeezed = text => text.replace(/[ \t\r\n\f\u200b]+/g, " ");
  const isSeen = element => (element.checkVisibility ? element.checkVisibility({visibilityProperty: true}) : element.getClientRects().length > 0);
  const isThere = element => isSeen(element) || getComputedStyle(element).display === "contents";
  const everything = function* (root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      const own = rootOf(element);
      if (own) yield* everything(own);
    }
  };

  // -- secret fields ------------------------------------------------------------------------------------------------------

  const SECRET_KINDS = new Set(["current-password", "new-password", "cc-number", "cc-csc", "one-time-code"]);
  const SECRET_NAME = /pass(word|wd|code|phrase)|passwor?t\b|kennwort|contrase|mot.de.passe|\bsenha|парол|密码|パスワード|\bpwd\b|\bpin\b|\bcvv|\bcvc|\bcsc\b|security.?code|card.?number|one.?time|\botp\b|\bsecret|api.?key|access.?token/i;
  const TYPED = new Set(["text", "password", "tel", "number", "email", "search", "url", "textarea"]);
  const knownSecrets = new WeakSet();
  const isSecret = element => {
    if (element.localName !== "input" && element.localName !== "textarea") return false;
    if (knownSecrets.has(element)) return true;
    if (!TYPED.has(element.type)) return false;
    const words = [element.name, element.id, element.getAttribute("aria-label"), element.placeholder, labelOf(element)].join(" ");
    const found = element.type === "password" || SECRET_NAME.test(words.replace(/_/g, " ")) ||
      (element.autocomplete || "").split(/\s+/).some(each => SECRET_KINDS.has(each)) ||
      (getComputedStyle(element).webkitTextSecurity || "none") !== "none";
    if (found) knownSecrets.add(element);
    return found;
  };
  const valueOf = element => (isSecret(element) ? (element.value ? MASK : "") : element.value || "");
  // A button that shows the password turns its field into a text field, at any moment between two of our calls.
  new MutationObserver(changes => {
    for (const change of changes) if (change.oldValue === "password") knownSecrets.add(change.target);
  }).observe(document, {subtree: true, attributes: true, attributeFilter: ["type"], attributeOldValue: true});
  const secretFields = () => {
    const all = document.getElementsByTagName("*").length > MAX_SEARCHED ? document.querySelectorAll("input, textarea") : everything(document);
    const found = Array.from(all).filter(isSecret);
    labels.clear();
    return found;
  };

  // -- invisible elements --------------------------------------------------------------------------------------------------

  const looks = new Map(); // by element, during one command
  const numbers = text => (text.match(/[\d.]+/g) || []).map(Number);
  const colors = text => (text.match(/rgba?\([^)]*\)/g) || []).map(numbers);
  const isClear = ([, , , alpha = 1]) => alpha < 0.1;
  const areAlike = (first, second) => first.slice(0, 3).every((each, at) => Math.abs(each - second[at]) * (first[3] === undefined ? 1 : first[3]) < 24);
  // Returns the colors behind an element, several if it is a gradient; null if they are unknown.
  const backgroundOf = element => {
    const path = [];
    let found = [[255, 255, 255]];
    for (let at = element; at; at = parentOf(at)) {
      const known = looks.get(at);
      if (known && known.behind !== undefined) { found = known.behind; break; }
      path.push(at);
      const style = getComputedStyle(at);
      if (style.backgroundImage !== "none" && !(style.webkitBackgroundClip || "").includes("text")) {
        const shades = colors(style.backgroundImage);
        found = style.backgroundImage.includes("url(") || !shades.length || shades.some(([, , , alpha = 1]) => alpha < 0.5) ? null : shades;
        break;
      }
      const [red, green, blue, alpha = 1] = numbers(style.backgroundColor);
      if (alpha > 0.5 && !(style.webkitBackgroundClip || "").includes("text")) { found = [[red, green, blue]]; break; }
    }
    for (const each of path) lookOf(each).behind = found;
    return found;
  };
  const parentOf = element => element.assignedSlot || element.parentElement || (element.getRootNode().host || null);
  const lookOf = element => {
    let look = looks.get(element);
    if (!look) looks.set(element, (look = {}));
    return look;
  };
  // Returns whether everything below an element is invisible, because of the element or of those around it.
  const isVeiled = element => {
    const look = lookOf(element);
    if (look.veiled === undefined) {
      const parent = parentOf(element);
      const style = getComputedStyle(element);
      look.veiled = (parent !== null && isVeiled(parent)) || +style.opacity < 0.05 ||
        (style.clip !== "auto" && /rect\((0|1)px,? (0|1)px,? (0|1)px,? (0|1)px\)/.test(style.clip)) ||
        /inset\((50|100)%|circle\(0/.test(style.clipPath) || /opacity\(0?(\.0\d*)?\)|blur\((\d{2,}|[5-9])/.test(style.filter) ||
        (style.backfaceVisibility === "hidden" && style.transform !== "none" && new DOMMatrix(style.transform).m33 < 0) ||
        (style.maskImage && style.maskImage !== "none" && colors(style.maskImage).length > 0 && colors(style.maskImage).every(isClear));
      if (!look.veiled && style.overflow !== "visible" && element !== document.documentElement && element !== document.body) {
        const {width, height} = element.getBoundingClientRect();
        look.veiled = style.display !== "contents" && style.display !== "inline" && (width <= 1 || height <= 1);
      }
    }
    return look.veiled;
  };
  // Returns whether text of this color is indistinguishable from its background.
  const isFaint = (element, style, color) => {
    const behind = backgroundOf(element);
    return isClear(color) || (behind !== null && style.textShadow === "none" && behind.every(each => areAlike(color, each)) && !liesOnPicture(element));
  };
  const hasFaintText = element => {
    const look = lookOf(element);
    if (look.faint === undefined) {
      const style = getComputedStyle(element);
      const own = [numbers(style.webkitTextFillColor || style.color)];
      const isCutOut = isClear(own[0]) && (style.webkitBackgroundClip || "").includes("text"); // the background has its shape
      const shades = isCutOut ? (style.backgroundImage === "none" ? [numbers(style.backgroundColor)] : colors(style.backgroundImage)) : own;
      look.faint = parseFloat(style.fontSize) < 3 || (style.webkitTextSecurity || "none") !== "none" ||
        (shades.length > 0 && shades.every(color => isFaint(element, style, color)));
    }
    return look.faint;
  };
  const liesOnPicture = element => {
    const own = element.getBoundingClientRect();
    for (let at = element, steps = 0; at && steps < 6; at = parentOf(at), steps++) {
      for (const each of Array.prototype.slice.call(at.querySelectorAll("img, video, canvas, svg, picture, [style*=background]"), 0, 20)) {
        const box = each.getBoundingClientRect();
        if (!each.contains(element) && box.left < own.right && box.right > own.left && box.top < own.bottom && box.bottom > own.top) return true;
      }
    }
    return false;
  };
  // Returns the elements around one that clip their content, also by scrolling, the innermost first.
  const cuttersOf = element => {
    const look = lookOf(element);
    if (look.cutters === undefined) {
      look.cutters = [];
      if (element !== document.documentElement && element !== document.body) {
        const style = getComputedStyle(element);
        let parent = parentOf(element);
        if (style.position === "absolute" || style.position === "fixed") {
          const holds = each => (style.position === "absolute" && each.position !== "static") || each.transform !== "none" || each.filter !== "none" || /paint|strict|content/.test(each.contain);
          while (parent && !holds(getComputedStyle(parent))) parent = parentOf(parent);
        }
        const others = parent ? cuttersOf(parent) : [];
        const isCutter = style.overflow !== "visible" && style.display !== "inline" && style.display !== "contents";
        look.cutters = isCutter ? [{box: element.getBoundingClientRect(), scrolls: /auto|scroll/.test(style.overflow)}, ...others] : others;
      }
    }
    return look.cutters;
  };
  const range = document.createRange();
  let reach = null; // how far the document goes, during one command
  // Returns whether no part of an element's box can be scrolled into view.
  const isOutOfReach = (element, box) => {
    let part = box;
    for (const {box: around, scrolls} of cuttersOf(element)) {
      if (scrolls) part = around;
      else if (part.right <= around.left || part.left >= around.right || part.bottom <= around.top || part.top >= around.bottom) return true;
    }
    reach = reach || {x: scrollX, y: scrollY, width: Math.max(document.documentElement.scrollWidth, innerWidth)};
    return box.right + reach.x <= 0 || box.bottom + reach.y <= 0 || box.left + reach.x >= reach.width;
  };
  const isHiddenText = node => {
    const element = node.parentElement || node.getRootNode().host;
    if (!element) return false;
    if (isVeiled(element) || hasFaintText(element)) return true;
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    return box.width < 1 || box.height < 1 || isOutOfReach(element, box);
  };
  const isHiddenBox = element => {
    const box = element.getBoundingClientRect();
    return isVeiled(element) || box.width <= 2 || box.height <= 2 || isOutOfReach(element, box);
  };
  // Returns whether a field's text, or the hint in it, is invisible.
  const hasFaintValue = element => isVeiled(element) || (!isSecret(element) && hasFaintText(element));
  const hasFaintHint = element => isVeiled(element) || isFaint(element, getComputedStyle(element), numbers(getComputedStyle(element, "::placeholder").color));

  // -- formulas ------------------------------------------------------------------------------------------------------------

  const SYMBOLS = {"∑": "\\sum", "∫": "\\int", "∏": "\\prod", "∞": "\\infty", "±": "\\pm", "×": "\\times", "⋅": "\\cdot", "·": "\\cdot", "≤": "\\le", "≥": "\\ge", "≠": "\\ne", "≈": "\\approx", "→": "\\to", "∂": "\\partial", "∇": "\\nabla", "∈": "\\in", "√": "\\sqrt", "−": "-", "⁢": "", "⁡": "", "α": "\\alpha", "β": "\\beta", "γ": "\\gamma", "δ": "\\delta", "ε": "\\epsilon", "θ": "\\theta", "λ": "\\lambda", "μ": "\\mu", "π": "\\pi", "ρ": "\\rho", "σ": "\\sigma", "τ": "\\tau", "φ": "\\phi", "ψ": "\\psi", "ω": "\\omega", "Γ": "\\Gamma", "Δ": "\\Delta", "Σ": "\\Sigma", "Ω": "\\Omega"};
  const grouped = text => (text.length === 1 || /^\\[a-zA-Z]+$/.test(text) ? text : "{" + text + "}");
  const joined = parts => parts.filter(part => part).reduce((text, part) => text + (/(\\[a-zA-Z]+|[_^].)$/.test(text) && /^[a-zA-Z]/.test(part) ? " " : "") + part, "");
  const latex = node => {
    if (node.nodeType === 3) return Array.from(node.data.trim(), each => (each in SYMBOLS ? SYMBOLS[each] : each)).reduce((text, each) => joined([text, each]), "");
    if (node.nodeType !== 1) return "";
    const parts = Array.prototype.map.call(node.children.length ? node.children : node.childNodes, latex);
    const [first = "", second = "", third = ""] = parts;
    switch (node.localName) {
      case "annotation": case "annotation-xml": return "";
      case "semantics": return first;
      case "mfrac": return "\\frac{" + first + "}{" + second + "}";
      case "msqrt": return "\\sqrt{" + joined(parts) + "}";
      case "mroot": return "\\sqrt[" + second + "]{" + first + "}";
      case "mover": {
        const accent = {"→": "\\vec", "^": "\\hat", "~": "\\tilde", "¯": "\\bar", "ˉ": "\\bar", "‾": "\\bar"}[(node.children[1] ? node.children[1].textContent : "").trim()];
        return accent ? accent + "{" + first + "}" : grouped(first) + "^" + grouped(second);
      }
      case "msup": return grouped(first) + "^" + grouped(second);
      case "msub": case "munder": return grouped(first) + "_" + grouped(second);
      case "msubsup": case "munderover": return grouped(first) + "_" + grouped(second) + "^" + grouped(third);
      case "mtext": return "\\text{" + node.textContent.trim() + "}";
      case "mi": { const text = joined(parts); return /^[a-zA-Z]{2,}$/.test(text) ? (/^(sin|cos|tan|log|ln|exp|lim|max|min|det)$/.test(text) ? "\\" + text : "\\mathrm{" + text + "}") : text; }
      case "mo": { const text = joined(parts); return /^(=|<|>|\+|-|\\le|\\ge|\\ne|\\approx|\\to|\\in|\\pm|\\times)$/.test(text) && node.previousElementSibling ? " " + text + " " : text === "," ? ", " : text; }
      case "mfenced": return "(" + parts.join(", ") + ")";
      case "mtable": return "\\begin{matrix} " + parts.join(" \\\\ ") + " \\end{matrix}";
      case "mtr": return parts.join(" & ");
      case "mspace": return " ";
      default: return joined(parts);
    }
  };
  // The source of a formula is not visible itself: it counts if the words in it are.
  const isDrawn = (source, math) => {
    const copy = math.cloneNode(true);
    copy.querySelectorAll("annotation, annotation-xml").forEach(each => each.remove());
    const seen = copy.textContent.replace(/\s+/g, "").toLowerCase();
    const words = source.replace(/\\(begin|end) *\{\w+\*?\}|\\[a-zA-Z]+/g, " ").match(/\p{L}{3,}/gu) || [];
    return source.trim() !== "" && words.every(word => seen.includes(word.toLowerCase()));
  };
  const formulaOf = element => {
    const math = element.localName === "math" ? element : element.querySelector("math");
    if (!math) return null;
    const written = math.querySelector("annotation[encoding='application/x-tex']");
    const source = written ? written.textContent : math.getAttribute("alttext") || "";
    const text = (isDrawn(source, math) ? source : latex(math)).replace(/\s+/g, " ").replace(/^ *\{\\(?:displaystyle|textstyle) ([\s\S]*)\} *$/, "$1").trim();
    const isBlock = math.getAttribute("display") === "block" || element.matches(".katex-display *, mjx-container[display=true]");
    return text ? (isBlock ? "$$" + text + "$$" : "$" + text + "$") : "";
  };
  const FORMULAS = "math, .katex, mjx-container, .mwe-math-element";

  // -- names ---------------------------------------------------------------------------------------------------------------

  const wordsOf = node => {
    if (node.nodeType === 3) return node.data;
    if (node.nodeType !== 1 || ["select", "textarea", "button"].includes(node.localName)) return "";
    return Array.prototype.map.call(node.childNodes, wordsOf).join("");
  };
  // The browser looks through the whole page for the labels of each control; we do it once for a command.
  const labels = new Map();
  const labelFor = element => {
    const root = element.getRootNode();
    if (!labels.has(root)) {
      const found = new Map();
      for (const label of root.querySelectorAll("label")) if (label.control && !found.has(label.control)) found.set(label.control, label);
      labels.set(root, found);
    }
    return labels.get(root).get(element) || null;
  };
  const labelOf = element => {
    const label = labelFor(element);
    return label ? squeezed(wordsOf(label)).trim() : "";
  };
  const nameOf = element => {
    const [name, isShown] = named(element, roleOf(element));
    return name && !isShown ? name + " (unseen)" : name;
  };

  // -- the page as Markdown ------------------------------------------------------------------------------------------------

  let left = 0;
  let apart = null; // written separately, so skipped in the rest
  let isWhole = false; // with navigation, header and footer
  let showsHidden = false;
  let hiddenLength = 0;
  const leftOut = new Set();
  let hasMain = false;
  const FURNITURE = {nav: "navigation", footer: "footer", header: "header", navigation: "navigation", contentinfo: "footer", banner: "header"};
  const isFurniture = element => {
    if (isWhole) return false;
    const role = element.getAttribute("role");
    const what = FURNITURE[role || element.localName];
    if (!what || (what === "header" && !hasMain)) return false; // without a main part, the header may contain the heading
    if (what !== "navigation" && !role && element.closest("article, section, main, blockquote, dialog")) return false;
    leftOut.add(what);
    return true;
  };
  const spend = text => {
    if (left <= 0) return "";
    const kept = text.length > left ? text.slice(0, left) : text;
    left -= kept.length;
    return kept;
  };
  const textOf = node => {
    if (!node.data.trim()) return squeezed(node.data);
    if (!isHiddenText(node)) return spend(squeezed(node.data));
    hiddenLength += node.data.trim().length;
    return showsHidden ? spend(" [not seen on the page: " + squeezed(node.data).trim() + "] ") : "";
  };
  const around = (text, mark) => {
    const inner = text.trim();
    if (!inner) return text;
    return (/^\s/.test(text) ? " " : "") + mark + inner + mark + (/\s$/.test(text) ? " " : "");
  };
  const control = element => {
    const type = (element.type || "").toLowerCase();
    if (element.localName === "button") return "[button: " + (inline(element).trim() || nameOf(element)) + "]";
    if (type === "hidden") return "";
    if (["submit", "button", "reset", "image"].includes(type)) return "[button: " + (element.value || nameOf(element) || type) + "]";
    if (type === "checkbox" || type === "radio") return element.checked ? "[x]" : "[ ]";
    if (element.localName === "select") {
      const chosen = Array.prototype.map.call(element.selectedOptions, option => squeezed(option.textContent).trim());
      return "[choice " + nameOf(element) + ": " + chosen.join(", ") + "]";
    }
    let value = type === "file" ? "" : valueOf(element);
    if (value && hasFaintValue(element)) {
      hiddenLength += value.length;
      value = showsHidden ? "[not seen on the page: " + value + "]" : "";
    }
    return "[field " + nameOf(element) + (value ? ": " + spend(value) : "") + "]";
  };

  const link = element => {
    const text = inline(element).trim() || nameOf(element);
    const target = element.href || "";
    if (!text) return "";
    if (typeof target !== "string" || !/^(https?|mailto|tel|file|ftp):/.test(target)) return text;
    return "[" + text.replace(/\n/g, " ") + "](" + spend(target.replace(/[()\s]/g, encodeURIComponent)) + ")";
  };

  // Returns text as it is written, without hidden parts.
  const seenText = node => {
    if (node.nodeType === 3) return node.data.trim() && isHiddenText(node) ? "" : node.data;
    if (node.nodeType !== 1 || !isThere(node)) return "";
    return node.localName === "br" ? "\n" : Array.prototype.map.call(node.childNodes, seenText).join("");
  };

  const inline = node => {
    let text = "";
    for (const child of inside(node)) text += inlineOne(child);
    return text;
  };
  const inlineOne = node => {
    if (left <= 0) return "";
    if (node.nodeType === 3) return textOf(node);
    if (node.nodeType !== 1 || SKIPPED.has(node.localName) || node === apart) return "";
    if (node.localName === "br") return "\n";
    if (!isThere(node) || isFurniture(node)) return "";
    if (node.matches(FORMULAS)) {
      const formula = formulaOf(node);
      if (formula !== null) return spend(formula);
    }
    switch (node.localName) {
      case "a": return link(node);
      case "b": case "strong": return around(inline(node), "**");
      case "i": case "em": case "cite": return around(inline(node), "*");
      case "del": case "s": return around(inline(node), "~~");
      case "code": case "kbd": case "samp": case "tt": {
        const text = seenText(node);
        const mark = text.includes("`") ? "``" : "`";
        return text.trim() ? mark + spend(squeezed(text).trim()) + mark : "";
      }
      case "img": return node.alt && !isHiddenBox(node) ? "![" + spend(squeezed(node.alt)) + "]" : "";
      case "input": case "select": case "textarea": case "button": return control(node);
      default: return inline(node);
    }
  };

  // Returns the blocks of an element, each a text of one or more lines.
  const blocks = element => {
    const found = [];
    let run = "";
    const flush = () => {
      const text = run.split("\n").map(line => squeezed(line).trim()).join("\n").trim();
      if (text) found.push(text);
      run = "";
    };
    for (const child of inside(element)) {
      if (left <= 0) break;
      if (child.nodeType === 1 && !SKIPPED.has(child.localName) && !isInline(child)) {
        flush();
        if (child !== apart && isThere(child) && !isFurniture(child)) found.push(...block(child));
      } else {
        run += inlineOne(child);
      }
    }
    flush();
    return found;
  };

  const indented = (text, by) => text.split("\n").map((line, at) => (at && line ? by + line : line)).join("\n");
  const list = (element, isOrdered) => {
    let number = isOrdered ? element.start || 1 : 0;
    const items = [];
    const loose = [];
    for (const child of inside(element)) {
      if (child.nodeType !== 1 || SKIPPED.has(child.localName) || !isSeen(child)) continue;
      if (child.localName !== "li" && child.getAttribute("role") !== "listitem") {
        if (child.localName === "ul" || child.localName === "ol") items.push("  " + indented(block(child).join("\n"), "  "));
        else loose.push(...blocks(child));
        continue;
      }
      const mark = isOrdered ? number++ + ". " : "- ";
      const parts = blocks(child);
      if (parts.length) items.push(mark + indented(parts.join("\n"), " ".repeat(mark.length)));
    }
    return [...(items.length ? [items.join("\n")] : []), ...loose];
  };

  const cell = element => blocks(element).join(" ").replace(/\s*\n\s*/g, " ").replace(/\|/g, "\\|");
  const isLayout = table =>
    ["presentation", "none"].includes(table.getAttribute("role")) || table.querySelector("table") !== null ||
    table.rows.length < 1 || Math.max(...Array.prototype.map.call(table.rows, row => row.cells.length)) < 2;
  const joinHeads = (heads, at) => {
    const words = [];
    heads.forEach((cells, line) => {
      let text = cells[at] || "";
      if (!text && line < heads.length - 1) for (let from = at; from > 0 && !text; from--) text = cells[from - 1] || "";
      if (text && !words.includes(text)) words.push(text);
    });
    return words.join(" ");
  };

  // A cell that spans rows is repeated in each of them, since the text can't show the span; one that spans columns is
  // followed by empty ones.
  const table = element => {
    const rows = [];
    let above = []; // by column: the cell that reaches down, and how many rows more
    let group = null;
    for (const row of element.rows) {
      if (row.parentNode !== group) [group, above] = [row.parentNode, []]; // no cell reaches out of its group
      if (!isSeen(row) || left <= 0) continue;
      const cells = [];
      const below = [];
      const reachDown = () => {
        for (let at = cells.length; above[at] && above[at].more > 0; at = cells.length) {
          cells.push(above[at].text);
          below[at] = {text: above[at].text, more: above[at].more - 1};
        }
      };
      for (const each of row.cells) {
        reachDown();
        const text = cell(each);
        const deep = each.rowSpan === 0 ? 1000 : each.rowSpan;
        for (let at = 0; at < Math.min(each.colSpan, 50); at++) {
          below[cells.length] = {text: at ? "" : text, more: deep - 1};
          cells.push(at ? "" : text);
        }
      }
      reachDown();
      above = below;
      rows.push({cells, isHead: row.parentNode.localName === "thead" || Array.prototype.every.call(row.cells, each => each.localName === "th")});
    }
    if (!rows.length) return [];
    const width = Math.max(...rows.map(row => row.cells.length));
    const written = cells => "| " + [...cells, ...Array(width - cells.length).fill("")].join(" | ") + " |";
    const heads = [];
    while (rows.length && rows[0].isHead && heads.length < 3) heads.push(rows.shift().cells);
    // Heads above each other become one line: "Sales 2023".
    const head = heads.length ? Array.from({length: width}, (_, at) => joinHeads(heads, at)) : [];
    const caption = element.caption ? [squeezed(inline(element.caption)).trim()].filter(text => text) : [];
    return [...caption, [written(head), "|" + " --- |".repeat(width), ...rows.map(row => written(row.cells))].join("\n")];
  };

  const block = element => {
    const name = element.localName;
    const level = /^h([1-6])$/.exec(name);
    if (level) {
      const text = inline(element).replace(/\s+/g, " ").trim();
      return text ? ["#".repeat(+level[1]) + " " + text] : [];
    }
    switch (name) {
      case "ul": case "menu": return list(element, false);
      case "ol": return list(element, true);
      case "table": return isLayout(element) ? Array.prototype.flatMap.call(element.rows, row => blocks(row)) : table(element);
      case "hr": return ["---"];
      case "pre": {
        const text = spend(seenText(element).replace(/\n$/, ""));
        const inner = element.querySelector("code") || element;
        const language = /(?:language|lang|highlight-source)-([\w+#-]{1,20})/.exec(inner.className + " " + element.className);
        let fence = "```";
        while (text.includes(fence)) fence += "`";
        return text.trim() ? [fence + (language ? language[1] : "") + "\n" + text + "\n" + fence] : [];
      }
      case "blockquote": {
        const text = blocks(element).join("\n\n");
        return text ? [text.split("\n").map(line => ("> " + line).trimEnd()).join("\n")] : [];
      }
      case "dt": return [around(blocks(element).join(" "), "**")].filter(text => text);
      case "dd": return blocks(element).map(text => ": " + indented(text, "  "));
      case "textarea": case "select": return [control(element)].filter(text => text);
      case "a": {
        // For a link around blocks, its heading or first words become the link.
        const parts = blocks(element);
        if (parts.length && /^https?:/.test(element.href || "")) parts[0] = parts[0].replace(/^(#+ )?([^\n]*)/, (_, mark, text) => (mark || "") + "[" + text + "](" + spend(element.href.replace(/[()\s]/g, encodeURIComponent)) + ")");
        return parts;
      }
      default: return blocks(element);
    }
  };


  const markdown = ({longest, whole, hidden, ref}) => {
    left = longest;
    [isWhole, showsHidden, hiddenLength, apart] = [whole, hidden, 0, null];
    leftOut.clear();
    if (!document.body) return {title: document.title, main: "", rest: "", cut: false, left_out: [], hidden: 0};
    if (ref) {
      const part = withRef(ref);
      isWhole = true;
      return {title: "", main: part ? (isInline(part) ? [inlineOne(part)] : block(part)).join("\n\n") : "", rest: "", cut: left <= 0, left_out: [], hidden: hiddenLength};
    }
    const articles = document.querySelectorAll("article");
    let main = document.querySelector("main, [role=main]") || (articles.length === 1 ? articles[0] : null);
    if (main && !isSeen(main)) main = null;
    hasMain = main !== null;
    const first = main ? block(main).join("\n\n") : "";
    apart = main;
    let rest = blocks(document.body).join("\n\n");
    if (!first && !rest && leftOut.size) return markdown({longest, whole: true, hidden}); // there is nothing else
    return {title: document.title, main: first, rest, cut: left <= 0, left_out: [...leftOut], hidden: hiddenLength};
  };

  // -- elements ------------------------------------------------------------------------------------------------------------

  let lastRef = 0;
  const refs = new WeakMap();
  const byRef = new Map();
  const refOf = element => {
    let ref = refs.get(element);
    if (!ref) {
      ref = "e" + ++lastRef;
      refs.set(element, ref);
      byRef.set(ref, new WeakRef(element));
    }
    return ref;
  };
  const withRef = ref => {
    const known = byRef.get(ref);
    const element = known && known.deref();
    return element && element.isConnected ? element : null;
  };

  const INPUTS = {checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox", button: "button", submit: "button", reset: "button", image: "button", file: "button", color: "button"};
  const TAGS = {button: "button", summary: "button", textarea: "textbox", img: "img", nav: "navigation", main: "main", aside: "complementary", ul: "list", ol: "list", menu: "list", li: "listitem", table: "table", tr: "row", td: "cell", th: "columnheader", dialog: "dialog", iframe: "iframe", frame: "iframe", canvas: "canvas", video: "video", audio: "audio", article: "article", option: "option", progress: "progressbar", meter: "meter", fieldset: "group", hr: "separator", math: "math"};
  const roleOf = element => {
    const given = (element.getAttribute("role") || "").trim().split(/\s+/)[0];
    if (given && given !== "generic") return given === "presentation" || given === "none" ? "" : given;
    const name = element.localName;
    if (name === "a") return element.hasAttribute("href") ? "link" : "";
    if (name === "area") return element.hasAttribute("href") ? "link" : "";
    if (name === "input") return element.type === "hidden" ? "" : INPUTS[element.type] || (element.list ? "combobox" : "textbox");
    if (name === "select") return element.multiple || element.size > 1 ? "listbox" : "combobox";
    if (/^h[1-6]$/.test(name)) return "heading";
    if (name === "header") return element.closest("article, section, main, aside, nav") ? "" : "banner";
    if (name === "footer") return element.closest("article, section, main, aside, nav") ? "" : "contentinfo";
    if (name === "form" || name === "section") return element.hasAttribute("aria-label") || element.hasAttribute("aria-labelledby") ? (name === "form" ? "form" : "region") : "";
    if (element.isContentEditable && !(element.parentElement && element.parentElement.isContentEditable)) return "textbox";
    return TAGS[name] || "";
  };
  const CONTROLS = new Set("button link checkbox radio switch tab option treeitem gridcell menuitem menuitemcheckbox menuitemradio textbox searchbox combobox spinbutton slider listbox".split(" "));
  const NAMED_BY_CONTENT = new Set("button link heading checkbox radio switch tab option treeitem gridcell menuitem menuitemcheckbox menuitemradio cell columnheader rowheader tooltip math".split(" "));
  const POINTED_AT = new Set(["canvas", "iframe", "img", "dialog", "alertdialog", "video", "heading"]);
  const HOLDS_CONTROLS = "a[href], button, input, select, textarea, summary, iframe, canvas, [role], [tabindex], [onclick], [contenteditable]";

  // Returns the words in an element: visible and invisible ones.
  const gather = (element, words) => {
    if (words.seen.length > MAX_NAME_LENGTH) return;
    for (const child of inside(element)) {
      if (child.nodeType === 3) {
        const text = squeezed(child.data);
        if (text.trim()) words[isHiddenText(child) ? "unseen" : "seen"] += text;
        else words.seen += text && " ";
      } else if (child.nodeType === 1 && !["script", "style", "template", "noscript"].includes(child.localName)) {
        if (child.getAttribute("aria-hidden") === "true" && child.localName === "svg") continue;
        if (!isThere(child)) continue;
        if (child.matches(FORMULAS)) { words.seen += formulaOf(child) || ""; continue; }
        const label = child.getAttribute("aria-label") || (child.localName === "img" ? child.alt : child.localName === "svg" ? child.textContent : "");
        if (label) words.unseen += " " + squeezed(label) + " ";
        else if (child.localName === "input" || child.localName === "textarea") words.seen += " ";
        else if (child.localName !== "select") {
          if (!isInline(child)) words.seen += " ";
          gather(child, words);
          if (!isInline(child)) words.seen += " ";
        }
      }
    }
  };
  const contentOf = element => {
    const words = {seen: "", unseen: ""};
    gather(element, words);
    return {seen: squeezed(words.seen).trim(), unseen: squeezed(words.unseen).trim()};
  };
  const cut = (text, longest) => (text.length > longest ? text.slice(0, longest) + "…" : text);
  // Returns the name of an element, and whether it can be read on the page.
  const named = (element, role) => {
    let name = "";
    let isShown = false;
    const content = NAMED_BY_CONTENT.has(role) && element.localName !== "input" ? contentOf(element) : {seen: "", unseen: ""};
    const ids = (element.getAttribute("aria-labelledby") || "").split(/\s+/).filter(id => id);
    const called = ids.map(id => element.getRootNode().getElementById && element.getRootNode().getElementById(id)).filter(found => found).map(contentOf);
    if (called.length) {
      name = called.map(each => each.seen || each.unseen).join(" ").trim();
      isShown = called.every(each => each.seen || !each.unseen);
    }
    if (!name && element.getAttribute("aria-label")) {
      name = squeezed(element.getAttribute("aria-label")).trim();
      isShown = name === content.seen;
    }
    if (!name && element.localName === "input" && ["submit", "button", "reset"].includes(element.type)) [name, isShown] = [element.value || (element.type === "submit" ? "Submit" : element.type === "reset" ? "Reset" : ""), true];
    const label = !name && labelFor(element);
    if (label) {
      const words = contentOf(label);
      [name, isShown] = words.seen ? [words.seen, true] : [words.unseen, false];
    }
    if (!name && (content.seen || content.unseen)) [name, isShown] = content.seen ? [content.seen, true] : [content.unseen, false];
    if (!name && element.localName === "fieldset" && element.querySelector("legend")) [name, isShown] = [contentOf(element.querySelector("legend")).seen, true];
    if (!name && element.localName === "img") [name, isShown] = [squeezed(element.alt).trim(), true]; // its role says what it is
    if (!name && element.localName === "iframe") [name, isShown] = [element.title || element.name || "", false];
    if (!name && element.placeholder) [name, isShown] = [element.placeholder, !element.value && !hasFaintHint(element)];
    if (!name && element.title) [name, isShown] = [element.title, false];
    if (!name && role === "textbox" && element.name) [name, isShown] = [element.name, false];
    return [cut(squeezed(name).trim(), isShown ? MAX_NAME_LENGTH : MAX_UNSEEN_NAME_LENGTH), isShown];
  };
  const attributesOf = (element, role, isShown, name) => {
    const found = [];
    if (role === "heading") found.push("level=" + (element.getAttribute("aria-level") || +element.localName[1] || 2));
    if (element.checked === true || element.getAttribute("aria-checked") === "true") found.push("checked");
    if (element.disabled || element.getAttribute("aria-disabled") === "true") found.push("disabled");
    if (element.readOnly && element.type !== "checkbox") found.push("readonly");
    if (element.getAttribute("aria-expanded")) found.push(element.getAttribute("aria-expanded") === "true" ? "expanded" : "collapsed");
    if (element.localName === "summary") found.push(element.parentElement && element.parentElement.open ? "expanded" : "collapsed");
    if (element.getAttribute("aria-selected") === "true" || (element.localName === "option" && element.selected)) found.push("selected");
    if (element.getAttribute("aria-pressed") === "true") found.push("pressed");
    if (element.required) found.push("required");
    if (element.localName === "input" && element.type === "file") found.push("file");
    if (role === "canvas") found.push(Math.round(element.clientWidth) + "x" + Math.round(element.clientHeight));
    if (name && !isShown) found.push("unseen");
    return found;
  };

  // On a long page, returns the elements that have a text or a name, with all their ancestors.
  const NAMES = ["aria-label", "placeholder", "title", "alt", "value", "name", "href"];
  const whereabouts = wanted => {
    const found = new Set();
    const add = element => {
      for (let at = element; at && !found.has(at); at = parentOf(at)) found.add(at);
      const label = element.closest("label");
      if (label && label.control) add(label.control);
      if (element.id) document.querySelectorAll("[aria-labelledby~='" + CSS.escape(element.id) + "']").forEach(each => found.has(each) || add(each));
    };
    const has = text => squeezed(text).toLowerCase().includes(wanted);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let words = ""; // of neighboring texts: scripts often write "3" and " items" one after the other
    while (texts.nextNode()) {
      const {data, previousSibling, parentElement} = texts.currentNode;
      words = previousSibling && previousSibling.nodeType === 3 ? words + data : data;
      if (parentElement && has(words)) add(parentElement);
    }
    for (const element of document.querySelectorAll(NAMES.map(name => "[" + name + "]").join())) {
      if (NAMES.some(name => has(element.getAttribute(name) || ""))) add(element);
    }
    return found;
  };

  // Returns rows of [depth, role, name, attributes, ref, text, whether the ref is of use], in the order of the page: the
  // first `most`, or on a long page those around what is `wanted`; with `interactive`, only those that are of use.
  const elements = (most, wanted, interactive) => {
    const isLong = document.body && document.getElementsByTagName("*").length > MAX_SEARCHED;
    const kept = isLong && wanted ? whereabouts(wanted.toLowerCase()) : null;
    const rows = [];
    let run = "";
    let runDepth = 0;
    let owner = null;
    const flush = () => {
      const text = squeezed(run).trim();
      run = "";
      if (!text) return;
      const above = rows[rows.length - 1];
      if (above && above[0] === runDepth - 1 && !above[2] && !above[5] && ["listitem", "cell", "columnheader"].includes(above[1])) above[5] = cut(text, 1000);
      else rows.push([runDepth, "text", "", [], refOf(owner), cut(text, 1000), false]);
    };
    const say = (text, depth, element) => {
      if (!run) [runDepth, owner] = [depth, element];
      run += text;
    };
    const add = (element, role, depth, isPointed) => {
      flush();
      const [name, isShown] = role ? named(element, role) : ((words => [cut(words.seen || words.unseen, MAX_NAME_LENGTH), Boolean(words.seen)])(contentOf(element)));
      const address = !name && role === "link" ? (element.getAttribute("href") || "").split("?")[0].slice(-60) : "";
      let text = "";
      if (["input", "textarea"].includes(element.localName) && (TYPED.has(element.type) || ["range", "date", "time", "month", "week", "datetime-local", "color"].includes(element.type))) text = hasFaintValue(element) ? "" : cut(squeezed(valueOf(element)), 300);
      else if (element.localName === "select") text = Array.prototype.map.call(element.selectedOptions, option => squeezed(option.label).trim()).join(", ");
      else if (role === "textbox" && element.isContentEditable) text = cut(contentOf(element).seen, 300);
      else if (element.getAttribute("aria-valuenow")) text = element.getAttribute("aria-valuenow");
      rows.push([depth, role || "clickable", name || address, attributesOf(element, role, isShown, name || address), refOf(element), text, isPointed || CONTROLS.has(role) || POINTED_AT.has(role)]);
    };
    const walk = (parent, depth, isInControl, isPointed) => {
      for (const child of inside(parent)) {
        if (rows.length >= most) return;
        if (child.nodeType === 3) {
          if (interactive) continue;
          if (!child.data.trim()) { if (run) run += " "; } else if (!isInControl && !isHiddenText(child)) say(child.data, depth, parent.nodeType === 1 ? parent : parent.host);
          continue;
        }
        if (child.nodeType !== 1 || (kept && !kept.has(child))) continue;
        const tag = child.localName;
        if (tag === "br") { if (run) run += " "; continue; }
        if (["script", "style", "template", "noscript", "head", "svg", "datalist", "object", "embed", "map"].includes(tag)) continue;
        const isFile = tag === "input" && child.type === "file";
        if (!isThere(child) || child.inert) {
          // A file field is often hidden behind its label, so the label represents it.
          if (isFile && labelFor(child) && isSeen(labelFor(child))) add(child, "button", depth, true);
          continue;
        }
        if (child.matches(FORMULAS)) {
          const formula = formulaOf(child);
          if (formula !== null) { say(formula, depth, child); continue; }
        }
        const role = roleOf(child);
        if ((role === "option" && tag === "option") || ((tag === "iframe" || tag === "img") && isHiddenBox(child))) continue;
        if (role && (role !== "img" || child.alt || child.getAttribute("aria-label"))) {
          if (["cell", "columnheader", "listitem", "row", "list", "article", "group"].includes(role) && (role === "list" || role === "row" || role === "group" || role === "article" || role === "listitem" || child.querySelector(HOLDS_CONTROLS) || rootOf(child))) {
            flush();
            const [name, isShown] = role === "group" || role === "article" ? named(child, role) : ["", true];
            rows.push([depth, role, name, name && !isShown ? ["unseen"] : [], refOf(child), "", false]);
            walk(child, depth + 1, isInControl, isPointed);
            flush();
            continue;
          }
          add(child, role, depth, false);
          if (tag === "select") {
            const options = Array.prototype.filter.call(child.options, option => getComputedStyle(option).display !== "none");
            options.slice(0, MAX_OPTIONS).forEach(option => rows.push([depth + 1, "option", squeezed(option.label).trim(), option.selected ? ["selected"] : [], refOf(option), "", false]));
            if (options.length > MAX_OPTIONS) rows.push([depth + 1, "text", "", [], refOf(child), "and " + (options.length - MAX_OPTIONS) + " more", false]);
          } else if (tag === "canvas" || tag === "iframe" || tag === "textarea" || tag === "input") continue;
          else if (NAMED_BY_CONTENT.has(role) || (role === "textbox" && child.isContentEditable)) {
            if (child.querySelector(HOLDS_CONTROLS) || child.localName.includes("-")) walk(child, depth + 1, true, isPointed || CONTROLS.has(role));
          } else {
            walk(child, depth + 1, isInControl, isPointed);
            flush();
          }
          continue;
        }
        const points = !isPointed && !isInControl && (child.hasAttribute("onclick") || (child.hasAttribute("tabindex") && child.tabIndex >= 0) || child.draggable || getComputedStyle(child).cursor === "pointer");
        if (points && tag !== "label" && tag !== "html" && tag !== "body") {
          add(child, "", depth, true);
          if (child.querySelector(HOLDS_CONTROLS)) walk(child, depth + 1, true, true);
          continue;
        }
        const isBlock = !isInline(child);
        if (isBlock) flush();
        const isLabel = tag === "label" && child.control && (isThere(child.control) || child.control.type === "file");
        walk(child, depth, isInControl || isLabel, isPointed);
        if (isBlock) flush();
      }
    };
    if (document.documentElement) walk(document.body || document.documentElement, 0, false, false);
    flush();
    if (!rows.length && kept) return elements(most, "", interactive); // the words may be spread over several elements
    return interactive ? rows.filter(row => row[6]) : rows;
  };

  // Returns the file field that an element represents.
  const fileField = element => {
    const isFile = each => each && each.localName === "input" && each.type === "file";
    if (isFile(element)) return element;
    const label = element.closest("label");
    if (label && isFile(label.control)) return label.control;
    return element.querySelector("input[type=file]");
  };
  // Returns whether there may be closed shadow roots: an element is drawn, but has no content that we can see.
  const mayHaveClosedRoots = () => {
    if (document.getElementsByTagName("*").length > MAX_SEARCHED) return false;
    for (const element of everything(document)) {
      if (rootOf(element)) continue;
      const isHost = element.localName.includes("-") || (!element.childNodes.length && ["div", "span", "section", "article", "p", "main", "aside", "header", "footer", "nav"].includes(element.localName));
      if (isHost && element.getClientRects().length && element.getBoundingClientRect().height > 4) return true;
    }
    return false;
  };
  const hasText = ({text}) => {
    const wanted = squeezed(text).trim().toLowerCase();
    if (!document.body) return false;
    if (squeezed(document.body.innerText).toLowerCase().includes(wanted)) return true;
    if (document.getElementsByTagName("*").length > MAX_SEARCHED) return false;
    for (const element of everything(document.body)) {
      const root = rootOf(element);
      if (root && squeezed(Array.prototype.map.call(root.children, child => child.innerText || "").join(" ")).toLowerCase().includes(wanted)) return true;
    }
    return false;
  };

  const documentId = Math.random().toString(36).slice(2);
  const COMMANDS = {
    elements: ({base, most, wanted, interactive}) => {
      lastRef = Math.max(lastRef, base);
      const rows = elements(Math.min(most, MAX_ROWS), wanted, interactive);
      return {rows, last: lastRef, document: documentId};
    },
    markdown,
    has_text: hasText,
    secrets: () => secretFields().map(field => field.value).filter(value => value),
    is_secret: ({ref}) => { const element = withRef(ref); return Boolean(element) && isSecret(element); },
    closed_roots: mayHaveClosedRoots,
  };
  const answer = command => {
    const given = JSON.parse(atob(command));
    reach = null;
    const holder = document.createElement("p");
    holder.textContent = JSON.stringify(COMMANDS[given.command](given));
    looks.clear();
    labels.clear();
    return holder;
  };
  const isHiddenFrame = element => {
    reach = null;
    const found = !isSeen(element) || isHiddenBox(element);
    looks.clear();
    return found;
  };
  const queryAll = (root, selector) => {
    if (selector === "secrets") return secretFields().filter(field => field.value && field.type !== "password" && isSeen(field));
    if (selector === "file") return [fileField(root)].filter(found => found);
    if (selector === "hidden") return isHiddenFrame(root) ? [root] : [];
    if (!/^e\d+$/.test(selector)) return [answer(selector)];
    return [withRef(selector)].filter(found => found);
  };
  return {query: (root, selector) => queryAll(root, selector)[0] || null, queryAll};
})()
