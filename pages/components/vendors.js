// The scripts of others, loaded once a page from where the server says that the app is served.

// What plotly's cartesian bundle draws of what it knows: it is a third of all of plotly.
const CARTESIAN = new Set(["bar", "box", "contour", "heatmap", "histogram", "image", "pie", "scatter", "violin"]);

// Plotly for a figure of these traces; where all of it is there already, that.
export function loadPlotly(root, traces) {
  const isCartesian = traces.every(({ type = "scatter" }) => CARTESIAN.has(type));
  if (!isCartesian || window.__plotlyLoading) return plotlyFrom("__plotlyLoading", root, "plotly.min.js");
  return plotlyFrom("__cartesianLoading", root, "plotly-cartesian.min.js");
}

const plotlyFrom = (name, root, file) => once(name, () => fetched(`${root}/vendor/plotly/${file}`).then(() => window.Plotly));

export function loadUplot(root) {
  if (window.uPlot) return Promise.resolve(window.uPlot);
  return once("__uplotLoading", () => fetched(`${root}/vendor/uplot/uplot.js`).then(() => window.uPlot));
}

// All that wait on a page wait for the same script; after it has failed the next one asks anew.
function once(name, load) {
  window[name] ??= attempt(load).catch((error) => {
    window[name] = undefined;
    throw error;
  });
  return window[name];
}

function fetched(src) {
  return new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = src;
    script.onload = resolve;
    script.onerror = () => {
      script.remove();
      reject(new Error(src));
    };
    document.head.appendChild(script);
  });
}

// What fails once in a busy browser is tried again before it is reported.
export async function attempt(action, { tries = 3, pause = 300 } = {}) {
  for (let i = 1; ; i += 1) {
    try {
      return await action();
    } catch (error) {
      if (i === tries) throw error;
      await new Promise((wake) => setTimeout(wake, pause * i));
    }
  }
}
