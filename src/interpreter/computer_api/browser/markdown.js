// The page as Markdown: what is seen, its main part first. Called with how many characters it may give.
longest => {
  const INLINE = new Set("a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark output q s samp small span strike strong sub sup time tt u var wbr input select textarea button br".split(" "));
  const SKIPPED = new Set("script style noscript template head svg canvas iframe object embed audio video map link meta param source track datalist option optgroup".split(" "));
  let left = longest;
  let apart = null; // told on its own, so skipped in the rest

  const isSeen = element => {
    if (element.checkVisibility) return element.checkVisibility({visibilityProperty: true});
    return element.getClientRects().length > 0;
  };
  const inside = element => {
    if (element.shadowRoot) return element.shadowRoot.childNodes;
    if (element.localName === "slot" && element.assignedNodes().length) return element.assignedNodes();
    return element.childNodes;
  };
  const isInline = element => {
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
  const squeezed = text => text.replace(/[ \t\r\n\f]+/g, " ");
  const spend = text => {
    if (left <= 0) return "";
    const kept = text.length > left ? text.slice(0, left) : text;
    left -= kept.length;
    return kept;
  };
  const around = (text, mark) => {
    const inner = text.trim();
    if (!inner) return text;
    return (/^\s/.test(text) ? " " : "") + mark + inner + mark + (/\s$/.test(text) ? " " : "");
  };
  const wordsOf = node => {
    if (node.nodeType === 3) return node.data;
    if (node.nodeType !== 1 || ["select", "textarea", "button"].includes(node.localName)) return "";
    return Array.prototype.map.call(node.childNodes, wordsOf).join("");
  };
  const nameOf = element =>
    squeezed(element.getAttribute("aria-label") || (element.labels && element.labels[0] && wordsOf(element.labels[0])) ||
      element.placeholder || element.title || element.name || "").trim();

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
    const value = type === "password" ? (element.value ? "•••" : "") : type === "file" ? "" : spend(element.value || "");
    return "[field " + nameOf(element) + (value ? ": " + value : "") + "]";
  };

  const link = element => {
    const text = inline(element).trim() || nameOf(element);
    const target = element.href || "";
    if (!text) return "";
    if (typeof target !== "string" || !/^(https?|mailto|tel|file|ftp):/.test(target)) return text;
    return "[" + text.replace(/\n/g, " ") + "](" + spend(target.replace(/[()\s]/g, encodeURIComponent)) + ")";
  };

  const inline = node => {
    let text = "";
    for (const child of inside(node)) text += inlineOne(child);
    return text;
  };
  const inlineOne = node => {
    if (left <= 0) return "";
    if (node.nodeType === 3) return spend(squeezed(node.data));
    if (node.nodeType !== 1 || SKIPPED.has(node.localName) || node === apart) return "";
    if (node.localName === "br") return "\n";
    if (!isSeen(node) && getComputedStyle(node).display !== "contents") return "";
    switch (node.localName) {
      case "a": return link(node);
      case "b": case "strong": return around(inline(node), "**");
      case "i": case "em": case "cite": return around(inline(node), "*");
      case "del": case "s": return around(inline(node), "~~");
      case "code": case "kbd": case "samp": case "tt": {
        const text = node.textContent;
        const mark = text.includes("`") ? "``" : "`";
        return text.trim() ? mark + spend(squeezed(text).trim()) + mark : "";
      }
      case "img": return node.alt ? "![" + spend(squeezed(node.alt)) + "]" : "";
      case "input": case "select": case "textarea": case "button": return control(node);
      default: return inline(node);
    }
  };

  // The blocks of an element, each a text of one or more lines.
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
        if (child !== apart && (isSeen(child) || getComputedStyle(child).display === "contents")) found.push(...block(child));
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
  const table = element => {
    const rows = [];
    for (const row of element.rows) {
      if (!isSeen(row) || left <= 0) continue;
      const cells = [];
      for (const each of row.cells) {
        cells.push(cell(each));
        for (let more = 1; more < Math.min(each.colSpan, 50); more++) cells.push("");
      }
      rows.push({cells, isHead: row.parentNode.localName === "thead" || Array.prototype.every.call(row.cells, each => each.localName === "th")});
    }
    if (!rows.length) return [];
    const width = Math.max(...rows.map(row => row.cells.length));
    const written = cells => "| " + [...cells, ...Array(width - cells.length).fill("")].join(" | ") + " |";
    const head = rows[0].isHead ? rows.shift().cells : [];
    const caption = element.caption ? [squeezed(element.caption.textContent).trim()] : [];
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
        const text = spend(element.textContent.replace(/\n$/, ""));
        const inner = element.querySelector("code") || element;
        const language = /(?:language|lang|highlight-source)-([\w+#-]+)/.exec(inner.className + " " + element.className);
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
        // A link around blocks: its heading or its first words are what leads on.
        const parts = blocks(element);
        if (parts.length && /^https?:/.test(element.href || "")) parts[0] = parts[0].replace(/^(#+ )?([^\n]*)/, (_, mark, text) => (mark || "") + "[" + text + "](" + spend(element.href.replace(/[()\s]/g, encodeURIComponent)) + ")");
        return parts;
      }
      default: return blocks(element);
    }
  };

  if (!document.body) return {title: document.title, main: "", rest: "", cut: false};
  const articles = document.querySelectorAll("article");
  let main = document.querySelector("main, [role=main]") || (articles.length === 1 ? articles[0] : null);
  if (main && !isSeen(main)) main = null;
  const first = main ? block(main).join("\n\n") : "";
  apart = main;
  return {title: document.title, main: first, rest: blocks(document.body).join("\n\n"), cut: left <= 0};
}
