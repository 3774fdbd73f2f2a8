/** In characters. */
export const MAX_REPLICA_QUESTION = 4_096;

export const MAX_REPLICA_ANSWER = 262_144;

/** For debugging: nothing depends on an answer. */
export interface Inquiries {
  /**
   * Undefined without an answer within `withinMs`, or if the replica is not alive. Never rejects.
   * The caller must handle its own replica itself.
   */
  askReplica(replica: string, question: string, withinMs: number): Promise<string | undefined>;
  /**
   * Sends no answer if `answer` rejects or returns too long a text. Returns a function that stops
   * it.
   */
  answerReplicas(answer: (question: string) => Promise<string>): () => void;
}
