// A page in a frame of another site says how high it is, so that the frame can be as high and only the
// site scrolls. The words are those of LTI, which Canvas takes. Any origin may hear it: the browser
// lets no site but those of TFM_FRAME_ANCESTORS show the page.

// What holds all of the page, inside what scrolls.
function whole() {
  let node = document.querySelector(".st-key-page");
  while (node && node.parentElement?.tagName !== "MAIN") node = node.parentElement;
  return node;
}

export default function () {
  if (window.parent === window) return undefined;
  let page = null; // drawn after this, and perhaps drawn anew
  const sizes = new ResizeObserver(() => {
    const height = Math.ceil(page.getBoundingClientRect().height);
    window.parent.postMessage({ subject: "lti.frameResize", height }, "*");
  });
  const find = () => {
    const found = whole();
    if (found === page) return;
    sizes.disconnect();
    page = found;
    if (page) sizes.observe(page);
  };
  const nodes = new MutationObserver(find);
  nodes.observe(document.body, { childList: true, subtree: true });
  find();
  return () => {
    nodes.disconnect();
    sizes.disconnect();
  };
}
