// Which colours can be told apart, and whether texts and controls can be seen.

// How colours are seen without one of the three kinds of cones (Machado, Oliveira & Fernandes 2009, table 1, severity 1), on linear RGB.
const SEEN = {
  "normal vision": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

/** In a page and here: how a CSS colour is read, made linear and light, and the contrast of two lights (WCAG 2). */
export function learnSight() {
  const linear = (part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) + 0.05;
  const parts = (css) => (css.startsWith("#") ? [1, 3, 5].map((at) => parseInt(css.slice(at, at + 2), 16)) : css.match(/[\d.]+/g).map(Number));
  const contrast = (a, b) => Math.max(a, b) / Math.min(a, b);
  globalThis.sight = { linear, light, parts, contrast };
}
learnSight();

const times = (matrix, vector) => matrix.map((row) => row.reduce((sum, part, at) => sum + part * vector[at], 0));

/** CIELAB of linear RGB (D65). */
function lab(rgb) {
  const xyz = times([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.072175], [0.0193339, 0.119192, 0.9503041]], rgb);
  const [x, y, z] = [xyz[0] / 0.95047, xyz[1], xyz[2] / 1.08883].map((part) => (part > 0.008856 ? Math.cbrt(part) : 7.787 * part + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** The two of these CSS colours that are hardest to tell apart in any of the kinds of vision: [distance in CIELAB, kind, one, other]. */
export function nearest(colours) {
  const linear = (css) => sight.parts(css).slice(0, 3).map(sight.linear);
  const pairs = Object.entries(SEEN).flatMap(([kind, matrix]) => {
    const labs = colours.map((css) => lab(times(matrix, linear(css)).map((part) => Math.min(1, Math.max(0, part)))));
    return labs.flatMap((one, a) => labs.slice(0, a).map((other, b) => [Math.hypot(...one.map((part, at) => part - other[at])), kind, colours[a], colours[b]]));
  });
  return pairs.sort((a, b) => a[0] - b[0])[0];
}

/** In a page that has learnt sight: texts with a contrast below 4.5 to 1 and edges of controls below 3 to 1 (WCAG 2.2, 1.4.3 and 1.4.11), and a page that is wider than its window. */
export function illegible() {
  const { light, parts } = sight;
  const ground = (at) => {
    for (; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = parts(getComputedStyle(at).backgroundColor);
      if (alpha > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const contrast = (css, under) => sight.contrast(light(parts(css)), light(under));
  // Disabled controls, and what is dimmed on purpose, are exempt.
  const counts = (at) => at.checkVisibility() && !at.closest(":disabled, fieldset:disabled, [aria-pressed=false], svg, canvas");
  const found = document.documentElement.scrollWidth > innerWidth + 1 ? [`${document.documentElement.scrollWidth} px wide in ${innerWidth}`] : [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const at = node.parentElement;
    if (!node.data.trim() || !counts(at)) continue;
    const is = contrast(getComputedStyle(at).color, ground(at));
    if (is < 4.5) found.push(`"${node.data.trim().slice(0, 40)}" ${is.toFixed(2)}`);
  }
  for (const at of document.querySelectorAll("button, select, input")) {
    const { borderTopColor, borderTopWidth } = getComputedStyle(at);
    if (!counts(at) || parseFloat(borderTopWidth) === 0 || ["checkbox", "radio", "range", "file"].includes(at.type)) continue;
    const is = contrast(borderTopColor, ground(at.parentElement));
    if (is < 3) found.push(`the edge of ${at.outerHTML.slice(0, 60)} ${is.toFixed(2)}`);
  }
  return found;
}
