/** The longest question of one replica to another, and the longest answer, in characters. */
export const MAX_REPLICA_QUESTION = 4_096;

export const MAX_REPLICA_ANSWER = 262_144;

/** Lets one replica ask another, for people who look inside: nothing depends on an answer. */
export interface Inquiries {
  /**
   * Asks the replica, and returns what it answers; undefined where nothing came within `withinMs`,
   * where it does not live, or where too much is asked at a time. Never rejects. Which replica is
   * oneself is for the caller to see.
   */
  askReplica(replica: string, question: string, withinMs: number): Promise<string | undefined>;
  /**
   * Returns what others ask from now on; a rejection, or an answer that is too long, is none.
   * Returns the way to end it.
   */
  answerReplicas(answer: (question: string) => Promise<string>): () => void;
}
