import { getHeapStatistics } from 'node:v8';
import type { Config } from '../config/config.ts';
import type { LevelledLog } from '../../contracts/log.ts';
import type { Metrics } from '../../contracts/metrics.ts';
import { TlsFiles } from '../../http/server/tls-files.ts';
import type { FrameBudgetTerms } from '../../http/terminal/frame-budget.ts';
import { AnswerBudget } from '../../actors/sandbox/commands/answer-budget.ts';

export const framesOf = (terminal: Config['terminal']): FrameBudgetTerms => ({
  connection: { frames: terminal.framesPerSecond, bytes: terminal.bytesPerSecond },
  tenant: { frames: terminal.tenantFramesPerSecond, bytes: terminal.tenantBytesPerSecond },
});

export const answerBudget = (
  { answers: { memoryPercent, tenantPercent } }: Config,
  metrics: Metrics,
): AnswerBudget =>
  new AnswerBudget({
    mostBytes: Math.floor((getHeapStatistics().heap_size_limit * memoryPercent) / 100),
    tenantPercent,
    metrics,
  });

/** Throws if a file can't be read. */
export const openTls = (
  { certFile, keyFile }: Config['tls'],
  log: LevelledLog,
): TlsFiles | undefined =>
  certFile === undefined || keyFile === undefined
    ? undefined
    : new TlsFiles({ certFile, keyFile, log });

export const httpDate = (timestamp: string | undefined): string | undefined =>
  timestamp === undefined ? undefined : new Date(timestamp).toUTCString();
