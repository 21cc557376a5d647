// Finds the results on any search page: links that lead away from it, each with the text around it.
most => {
  const site = host => host.split(".").slice(-2).join(".");
  const isSeen = element => (element.checkVisibility ? element.checkVisibility({visibilityProperty: true}) : true);
  const squeezed = text => (text || "").replace(/\s+/g, " ").trim();
  // Search pages lead through themselves: /l/?uddg=..., /url?q=...
  const target = link => {
    let url;
    try { url = new URL(link.href); } catch { return null; }
    for (const name of ["uddg", "q", "url", "u", "to"]) {
      const inner = url.searchParams.get(name);
      if (inner && /^https?:\/\//.test(inner) && site(url.hostname) === site(location.hostname)) {
        try { url = new URL(inner); } catch { return null; }
        break;
      }
    }
    if (!/^https?:$/.test(url.protocol)) return null;
    const isAway = url.host !== location.host && (/^[\d.:[\]]+$/.test(url.hostname) || site(url.hostname) !== site(location.hostname));
    return isAway ? url.href : null;
  };
  const titles = new Map();
  const links = new Map();
  for (const link of document.querySelectorAll("a[href]")) {
    const url = target(link);
    const heading = link.querySelector("h1, h2, h3, h4");
    const text = squeezed((heading || link).innerText);
    if (!url || text.length < 3 || !isSeen(link)) continue;
    if (!titles.has(url)) { titles.set(url, text); links.set(url, link); }
    if (titles.size >= most * 3) break;
  }
  const others = (element, url) => Array.prototype.some.call(element.querySelectorAll("a[href]"), link => { const other = target(link); return other && other !== url; });
  const found = [];
  for (const [url, title] of titles) {
    let around = links.get(url);
    while (around.parentElement && around.parentElement !== document.body && !others(around.parentElement, url)) around = around.parentElement;
    const snippet = squeezed(squeezed(around.innerText).replace(title, ""));
    found.push({title: title.slice(0, 200), url, snippet: snippet.slice(0, 400)});
    if (found.length >= most) break;
  }
  return found;
}
