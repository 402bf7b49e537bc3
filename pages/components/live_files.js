// Files of a web server that change or grow, asked for so that what is known is not sent again.

const PATIENCE = 20000; // milliseconds

export class Refused extends Error {
  constructor(file, status) {
    super(`${file}: ${status}`);
    Object.assign(this, { file, status });
  }
}

async function ask(name, headers, cache) {
  const answer = await fetch(name, { headers, cache, signal: AbortSignal.timeout(PATIENCE) });
  if (!answer.ok && answer.status !== 304 && answer.status !== 416) throw new Refused(name, answer.status);
  return answer;
}

// A small JSON file that changes: { values, age }, values null where it is as it was; age is how many
// seconds ago it changed, by the server's own clock, null where the server does not say.
export function changing(name) {
  let known = {};
  return async () => {
    const answer = await ask(name, known, "no-store");
    if (answer.status === 304) return { values: null, age: null };
    const values = await answer.json();
    const [tag, date, now] = ["ETag", "Last-Modified", "Date"].map((header) => answer.headers.get(header));
    known = tag ? { "If-None-Match": tag } : date ? { "If-Modified-Since": date } : {};
    return { values, age: date && now ? (Date.parse(now) - Date.parse(date)) / 1000 : null };
  };
}

// The whole lines of a file between two places. A server that knows no ranges sends all of it; one
// whose copy is behind sends less, and the rest comes another time.
export async function grown(name, from, to) {
  const answer = await ask(name, { Range: `bytes=${from}-${to - 1}` }, "no-store");
  if (answer.status === 416) return new Uint8Array();
  const sent = new Uint8Array(await answer.arrayBuffer());
  const bytes = answer.status === 206 ? sent : sent.subarray(from, to);
  return bytes.subarray(0, bytes.lastIndexOf(10) + 1);
}

// Files that never change: the browser keeps them.
export const lasting = async (name) => new Uint8Array(await (await ask(name, {}, "default")).arrayBuffer());
export const lastingJson = async (name) => (await ask(name, {}, "default")).json();
