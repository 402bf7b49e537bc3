const nodes = new WeakMap();

function rootUrl(fallback) {
  // Streamlit's own bundle knows where the app is served from, behind a proxy with a prefix too.
  for (const script of document.scripts) {
    const at = script.src.indexOf("/static/js/");
    if (at > 0) return script.src.slice(0, at);
  }
  return fallback;
}

function loadPlotly(fallback) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  window.__plotlyLoading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${rootUrl(fallback)}/vendor/plotly/plotly.min.js`;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      window.__plotlyLoading = undefined;
      script.remove();
      reject(new Error("plotly"));
    };
    document.head.appendChild(script);
  });
  return window.__plotlyLoading;
}

function isDark(element) {
  const colour = getComputedStyle(element).getPropertyValue("--st-background-color").trim();
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = colour || "#fff";
  probe.fillRect(0, 0, 1, 1);
  const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b < 128;
}

function draw(state) {
  const { node, data } = state;
  if (!node.isConnected || !data) return Promise.resolve();
  const figure = JSON.parse(data.figure);
  const templates = JSON.parse(data.templates);
  state.dark = isDark(node);
  figure.layout.template = templates[state.dark ? "dark" : "light"];
  figure.layout.uirevision ??= "kept";
  figure.layout.autosize = true;
  delete figure.layout.width;
  node.style.height = `${figure.layout.height ?? 360}px`;
  figure.layout.height = undefined;
  return window.Plotly.react(node, figure.data, figure.layout, data.config);
}

function mount(parentElement) {
  const node = parentElement.querySelector(".live-figure");
  const state = { node, data: null, dark: null, busy: false, again: false };
  state.resize = new ResizeObserver(() => {
    if (node.isConnected && node.data && node.clientWidth > 0) window.Plotly.Plots.resize(node);
  });
  state.resize.observe(node);
  state.theme = setInterval(() => {
    if (node.isConnected && node.data && isDark(node) !== state.dark) refresh(state);
  }, 500);
  nodes.set(parentElement, state);
  return state;
}

async function refresh(state) {
  if (state.busy) {
    state.again = true; // a newer figure came while this one was being drawn
    return;
  }
  state.busy = true;
  do {
    state.again = false;
    await draw(state);
  } while (state.again);
  state.busy = false;
}

export default function ({ data, parentElement }) {
  const state = nodes.get(parentElement) ?? mount(parentElement);
  state.data = data;
  loadPlotly(data.root)
    .then(() => refresh(state))
    .catch(() => {
      state.busy = false;
      state.node.textContent = data.sorry;
    });
  return () => {
    clearInterval(state.theme);
    state.resize.disconnect();
    if (window.Plotly && state.node.data) window.Plotly.purge(state.node);
    nodes.delete(parentElement);
  };
}
