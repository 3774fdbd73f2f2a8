/** Fails if the promise resolves. */
export const rejection = async (promise: Promise<unknown>): Promise<Error> => {
  try {
    await promise;
  } catch (error) {
    if (error instanceof Error) return error;
    throw new Error(`rejected with ${String(error)}, which is no Error`, { cause: error });
  }
  throw new Error('it resolved, where a rejection was expected');
};
