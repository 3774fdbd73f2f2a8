/** Longest question between replicas, and longest answer, in characters. */
export const MAX_REPLICA_QUESTION = 4_096;

export const MAX_REPLICA_ANSWER = 262_144;

/** Lets one replica query another, for debugging: nothing depends on an answer. */
export interface Inquiries {
  /**
   * Sends a question to the replica and returns its answer. Undefined if no answer arrives within
   * `withinMs`, if the replica is not alive, or if too many questions are in progress. Never
   * rejects. The caller must handle its own replica itself.
   */
  askReplica(replica: string, question: string, withinMs: number): Promise<string | undefined>;
  /**
   * Answers questions of other replicas from now on. Sends no answer if `answer` rejects or returns
   * too long a text. Returns a function that stops it.
   */
  answerReplicas(answer: (question: string) => Promise<string>): () => void;
}
