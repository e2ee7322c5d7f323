// Texts of kernels: base64 of zlib, unpacked when they are asked for.
async function unpacked(text) {
  if (text.plain == null) {
    const packed = Uint8Array.from(atob(text.packed), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    text.plain = await new Response(stream).text();
  }
  return text.plain;
}

function textButton(m, launch) {
  if (launch.text == null) return h("p", { class: "none" }, m.no_texts ? "no text: " + m.no_texts : "this launch has no text of its own");
  const text = m.texts[launch.text], box = h("div");
  const button = h("button", { id: "show-text", onclick: async () => {
    if (box.childNodes.length) { box.replaceChildren(); return; }
    const find = h("input", { type: "search", placeholder: "find in the text", "aria-label": "find in the text" });
    const pre = h("pre", { id: "kernel-text", tabindex: 0 });
    let plain;
    try { plain = await unpacked(text); } catch (error) { pre.textContent = "this browser cannot unpack it: " + error; box.replaceChildren(pre); return; }
    const show = () => {
      const word = find.value.toLowerCase();
      pre.textContent = word ? plain.split("\n").map((line, i) => `${i + 1}: ${line}`).filter((line) => line.toLowerCase().includes(word)).join("\n") || "nothing found" : plain;
    };
    find.addEventListener("input", show);
    show();
    box.replaceChildren(find, pre);
  } }, `text of the kernel (${bytesText(text.bytes)})`);
  return h("div", {}, button, box);
}
