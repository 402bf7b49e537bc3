// The parts that a page carries: base64 in scripts that no browser runs, compressed by gzip.

export async function openedPart(name) {
  const text = atob(document.getElementById(`part-${name}`).textContent);
  const packed = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
