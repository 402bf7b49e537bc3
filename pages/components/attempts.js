// What fails once in a busy browser is tried again before anybody is told of it.

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
