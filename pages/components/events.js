// What components of one page tell each other.

// While the training plays in the grid, the chosen head's weights of the moment go to whoever shows
// that head: { step, values, rows, columns }.
export const FRAME = "attention-frame";
