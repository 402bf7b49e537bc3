// The scripts of others, loaded once a page from where the server says that the app is served.

export function loadPlotly(root) {
  if (window.Plotly) return Promise.resolve(window.Plotly);
  window.__plotlyLoading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = `${root}/vendor/plotly/plotly.min.js`;
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

export function loadViz(root) {
  const url = new URL(`${root}/vendor/viz/viz.js`, document.baseURI).href;
  window.__vizLoading ??= import(url).then((module) => module.instance()).catch((error) => {
    window.__vizLoading = undefined;
    throw error;
  });
  return window.__vizLoading;
}
