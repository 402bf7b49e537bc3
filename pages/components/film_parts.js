// The parts that a page carries: base64 in scripts that no browser runs, compressed by gzip.

export const ownPart = (name) => document.getElementById(`part-${name}`).textContent;

// partOf: returns a part by its name, as it stands in its page.
export async function openedPart(name, partOf = ownPart) {
  const text = atob(partOf(name));
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
