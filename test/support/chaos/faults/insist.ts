const WITHIN_MS = 90_000;
const AGAIN_MS = 500;

/** Repeats an attempt while the API server is away or slow. Rejects as the last attempt. */
export const insist = async <T>(attempt: () => Promise<T>): Promise<T> => {
  const deadline = performance.now() + WITHIN_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > deadline) throw error;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, AGAIN_MS);
    });
  }
};
