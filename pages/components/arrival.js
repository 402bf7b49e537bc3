// Another place begins at its top. Where one is stands in the document: a change of page may make
// this component anew.

export default function ({ data }) {
  const { dataset } = document.documentElement;
  const before = dataset.place;
  dataset.place = data.place;
  if (before === undefined || before === data.place) return;
  for (let node = document.querySelector(".st-key-page"); node; node = node.parentElement) node.scrollTop = 0;
}
