import type { Figure } from '../figure.ts';
import { start, terminal } from '../processes/first-bytes.ts';
import { silent, stalled } from '../processes/readers.ts';
import { throughput } from '../processes/throughput.ts';

export const processes: readonly Figure[] = [start, terminal, throughput, silent, stalled];
