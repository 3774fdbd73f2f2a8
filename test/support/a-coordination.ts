import type { Clock } from '../../src/contracts/clock.ts';
import type { Coordination } from '../../src/contracts/coordination.ts';
import { inProcessCoordination } from '../../src/embedded/coordination.ts';
import { KeptAnswers } from '../../src/embedded/kept-answers.ts';
import { MemoryAnswerRows } from './memory-answer-rows.ts';
import { quietLog } from './quiet-log.ts';

/** The embedded coordination, with its answers in memory. */
export const aCoordination = (clock: Clock, rows = new MemoryAnswerRows()): Coordination =>
  inProcessCoordination(clock, new KeptAnswers({ rows, clock, log: quietLog }));
