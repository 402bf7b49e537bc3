// A curve that can be heard: the lower the loss, the lower the tone. Nothing sounds before it is asked for.

const [LOWEST, HIGHEST] = [196, 1175]; // hertz
const LOUD = 0.08;
const FADE = 0.12; // seconds

// The tone of a value between two others, evenly in octaves and in the logarithm of the value.
export function pitch(value, low, high) {
  if (!(high > low) || !(low > 0)) return LOWEST;
  const share = Math.log(Math.max(low, Math.min(high, value)) / low) / Math.log(high / low);
  return LOWEST * (HIGHEST / LOWEST) ** share;
}

// The lowest and the highest value of a line that a logarithm takes.
export function range({ values }) {
  const known = values.filter((value) => value > 0);
  return known.length ? [Math.min(...known), Math.max(...known)] : [0, 0];
}

export function instrument() {
  const audio = new AudioContext();
  const [tone, volume] = [audio.createOscillator(), audio.createGain()];
  tone.type = "triangle";
  volume.gain.value = 0;
  tone.connect(volume).connect(audio.destination);
  tone.start();
  return {
    play(hertz) {
      const at = audio.currentTime;
      tone.frequency.setTargetAtTime(hertz, at, 0.015);
      volume.gain.cancelScheduledValues(at);
      volume.gain.setTargetAtTime(LOUD, at, 0.01);
      volume.gain.setTargetAtTime(0, at + FADE, 0.05);
    },
    end: () => audio.close(),
  };
}
