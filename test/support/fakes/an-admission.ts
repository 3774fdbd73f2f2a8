import { AnswerBudget } from '../../../src/actors/sandbox/commands/answer-budget.ts';
import { silentMetrics } from '../../../src/contracts/metrics.ts';
import { Admission, type AdmissionDeps } from '../../../src/http/limits/admission.ts';
import { quietLog } from './quiet-log.ts';

/** As a daemon's, with 256 MiB for answers. */
export const anAdmission = (
  given: Partial<AdmissionDeps> & Pick<AdmissionDeps, 'clients'>,
): Admission =>
  new Admission({
    metrics: silentMetrics,
    log: quietLog,
    answers: new AnswerBudget({
      metrics: silentMetrics,
      mostBytes: 256 * 1024 * 1024,
      tenantPercent: 50,
    }),
    ...given,
  });
