// All that reaches into plotly's insides: what its public interface does not say. An upgrade of plotly
// breaks this file alone; style.css in pages/app says the same of Streamlit's and of plotly's classes.

import { zoomOf } from "./dom.js";

// The layout as it was drawn: plotly tells nobody how much room an axis with square cells really took.
export function drawnLayout(node) {
  const layout = node._fullLayout;
  if (!layout?.xaxis) return null;
  const axes = (letter) => Object.keys(layout)
    .filter((name) => name.startsWith(`${letter}axis`))
    .map((name) => layout[name])
    .map(({ constrain, _inputDomain, _length }) => ({ isFree: constrain !== "domain" || !_inputDomain, domain: _inputDomain, length: _length }));
  return {
    width: layout._size.w,
    height: layout._size.h,
    hasWordsBelow: layout.xaxis.visible,
    xAxes: axes("x"),
    yAxes: axes("y"),
  };
}

// The share of its room that the longest axis takes; 1 where an axis is free to take it all.
export function share(axes, room) {
  if (!axes.length || axes.some(({ isFree }) => isFree)) return 1;
  return Math.max(...axes.map(({ length, domain: [low, high] }) => length / (room * (high - low))));
}

// The words beside points: plotly has no rule for words that would cover each other.
export const pointWords = (node) => node.querySelectorAll(".scatterlayer .textpoint text");

// The cells of a figure's heatmap as plotly decoded them, and what hovering says of each.
export function heatmap(node) {
  const { z, hovertext } = node._fullData[0];
  return { z, hovertext };
}

// plotly finds what the pointer is on by the transforms around a figure, and knows no zoom.
export function followZoom(node) {
  const layout = node._fullLayout;
  if (!layout || layout.followsZoom) return;
  const ofTransforms = layout._calcInverseTransform;
  layout.followsZoom = true;
  layout._calcInverseTransform = (gd) => {
    const by = 1 / zoomOf(node);
    if (by === 1) { ofTransforms(gd); return; }
    const across = [[by, 0, 0, 0], [0, by, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]];
    Object.assign(gd._fullLayout, { _invTransform: across, _invScaleX: by, _invScaleY: by, _lastBBox: null });
  };
}

// The buttons of a figure, from left to right.
export const barButtons = (node) => node.querySelectorAll(".modebar-btn");
