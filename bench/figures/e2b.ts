import { beside, create } from '../e2b/claims.ts';
import { run } from '../e2b/commands.ts';
import { files } from '../e2b/files.ts';
import { silent, stalled } from '../e2b/readers.ts';
import { terminals } from '../e2b/terminals.ts';
import type { Figure } from '../figure.ts';

export const e2b: readonly Figure[] = [create, run, terminals, files, silent, stalled, beside];
