const WITHIN_MS = 90_000;
const AGAIN_MS = 500;

/**
 * What somebody wants done by the API server, repeated while that is away, or slow; rejects as the
 * last attempt did.
 */
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
