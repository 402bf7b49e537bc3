// A cookie that all tabs write: parts "page:mark:mark", separated by "/".

const YEAR = 31536000;

export function merged(...texts) {
  const parts = new Map();
  texts.flatMap((text) => text.split("/")).filter(Boolean).forEach((part) => {
    const [name, ...marks] = part.split(":");
    const known = parts.get(name) ?? new Set();
    marks.forEach((mark) => known.add(mark));
    parts.set(name, known);
  });
  return [...parts].map(([name, marks]) => [name, ...marks].join(":")).join("/");
}

const kept = (name) => document.cookie.split("; ").find((one) => one.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";

export default function ({ data: [{ name, text, path, resets }], parentElement }) {
  const isReset = resets > (parentElement.resets ?? 0);
  parentElement.resets = resets;
  const before = kept(name);
  const value = isReset ? text : merged(before, text);
  if (value === before) return;
  const secure = window.location.protocol === "https:" ? "; secure" : "";
  document.cookie = `${name}=${value}; path=${path}; max-age=${value ? YEAR : 0}; samesite=lax${secure}`;
}
