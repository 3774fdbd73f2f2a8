import { said, type Case } from '../case.ts';

/** Faults give 503 with a reason, never 500. */
export const noInternalError = ({ calls }: Case): readonly string[] =>
  calls.filter(({ answer }) => answer?.status === 500).map(said);
