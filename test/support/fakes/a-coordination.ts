import type { Clock } from '../../../src/contracts/clock.ts';
import type { Coordination } from '../../../src/contracts/coordination.ts';
import { inProcessCoordination } from '../../../src/embedded/coordination/coordination.ts';
import { KeptAnswers } from '../../../src/embedded/store/kept-answers.ts';
import { MemoryAnswerRows } from './memory-answer-rows.ts';
import { quietLog } from './quiet-log.ts';

/** Room for three answers of 62,000 bytes of a tenant, and four of all. */
export const FEW_BYTES = { totalBytes: 300_000, tenantBytes: 200_000 };

/** The embedded coordination, with answers in memory. */
export const aCoordination = (clock: Clock, rows = new MemoryAnswerRows()): Coordination =>
  inProcessCoordination(clock, new KeptAnswers({ rows, clock, log: quietLog, bounds: FEW_BYTES }));
