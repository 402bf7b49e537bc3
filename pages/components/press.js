// Presses a button of the page once for each mark: what was made on a press saves itself.

const MAX_FRAMES = 120; // about two seconds in which the button may still come

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".press");
  if (root.mark === data.mark) return;
  root.mark = data.mark;
  let left = MAX_FRAMES;
  const look = () => {
    const button = document.querySelector(`.st-key-${data.target} button`);
    if (button && !button.disabled) button.click();
    else if (left-- > 0) requestAnimationFrame(look);
  };
  look();
}
