import { createReadStream } from 'node:fs';
import { basename } from 'node:path';
import type { ChainEnd } from './audit-chain.ts';
import { readChainLine } from './audit-chain.ts';
import { firstSeqOf } from './audit-folder.ts';

/**
 * `cut`: the end is missing. `changed`: a line was altered. `reordered`: a line or file is out of
 * order. `lost`: the daemon recorded that it could not write some lines.
 */
export interface AuditFinding {
  readonly kind: 'cut' | 'changed' | 'missing' | 'reordered' | 'lost';
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly problem: string;
}

export interface AuditReport {
  readonly files: number;
  readonly lines: number;
  /** If it is more than 1, earlier lines were rotated away or removed. */
  readonly first?: number;
  readonly last?: ChainEnd;
  /** Runs without an orderly end: their last actions may lack a line. */
  readonly crashes: number;
  readonly findings: readonly AuditFinding[];
}

const MOST_FINDINGS = 1_000;

/**
 * `known` has earlier ends of the chain, as from the file `head` or the anchor's lines: a chain
 * that does not reach them was cut. Rejects if a file can't be read.
 */
export const verifyAudit = async (
  files: readonly string[],
  known: readonly ChainEnd[] = [],
): Promise<AuditReport> => {
  const verifier = new Verifier(known);
  for (const file of files) {
    verifier.begin(file);
    for await (const { text, ended } of linesOf(file)) verifier.take(text, ended);
  }
  return verifier.report(files);
};

const MOST_LINE = 65_536;

class Verifier {
  readonly #known = new Map<number, readonly string[]>();
  #furthest = 0;
  readonly #findings: AuditFinding[] = [];
  #file = '';
  #line = 0;
  #lines = 0;
  #crashes = 0;
  #first: number | undefined;
  #last: ChainEnd | undefined;
  #afterGarbage = false;

  constructor(known: readonly ChainEnd[]) {
    for (const { seq, hash } of known) {
      this.#known.set(seq, [...(this.#known.get(seq) ?? []), hash]);
      this.#furthest = Math.max(this.#furthest, seq);
    }
  }

  begin(file: string): void {
    this.#file = file;
    this.#line = 0;
  }

  take(text: string, ended: boolean): void {
    this.#line += 1;
    this.#lines += 1;
    const line = text.length > MOST_LINE ? undefined : readChainLine(text);
    if (!line) {
      this.#find(
        ended ? 'changed' : 'cut',
        ended ? 'this is not a line of an audit' : 'the file ends in the middle of a line',
      );
      this.#afterGarbage = true;
      return;
    }
    if (!ended)
      this.#find('cut', 'the last line of the file is incomplete: it ends without a line break');
    if (!line.whole) this.#find('changed', `line ${line.seq} was changed: its hash differs`);
    this.#place(line);
    this.#checkKnown(line);
    if (line.kind === 'lost')
      this.#find(
        'lost',
        `the daemon could not write ${String(line.fields['count'])} lines ` +
          `(${String(line.fields['why'])})`,
      );
    if (line.kind === 'begin' && line.fields['after'] === 'crash') this.#crashes += 1;
    this.#first ??= line.seq;
    this.#last = { seq: line.seq, hash: line.hash };
    this.#afterGarbage = false;
  }

  report(files: readonly string[]): AuditReport {
    const last = this.#last;
    if ((last?.seq ?? 0) < this.#furthest)
      this.#find(
        'cut',
        `the chain ends with line ${last?.seq ?? 0}, but it is known to have reached line ` +
          `${this.#furthest}`,
      );
    return {
      files: files.length,
      lines: this.#lines,
      crashes: this.#crashes,
      findings: this.#findings,
      first: this.#first,
      last,
    };
  }

  #place({ seq, prev }: { readonly seq: number; readonly prev: string }): void {
    const before = this.#last;
    const named = this.#line === 1 ? firstSeqOf(basename(this.#file)) : undefined;
    if (named !== undefined && named !== seq)
      this.#find(
        'reordered',
        `the file's name says that it begins with line ${named}, but it begins with line ${seq}`,
      );
    if (!before) return;
    if (seq <= before.seq) this.#find('reordered', `line ${seq} comes after line ${before.seq}`);
    else if (seq > before.seq + 1) this.#find('missing', this.#gap(before.seq + 1, seq - 1));
    else if (prev !== before.hash && !this.#afterGarbage)
      this.#find(
        'changed',
        `line ${seq} does not follow from line ${before.seq}: one of them was changed`,
      );
  }

  #gap(from: number, to: number): string {
    return from === to ? `line ${from} is missing` : `lines ${from} to ${to} are missing`;
  }

  #checkKnown({ seq, hash }: ChainEnd): void {
    if (this.#known.get(seq)?.some((known) => known !== hash))
      this.#find(
        'changed',
        `line ${seq} is known to have had another hash: this line or an earlier line was ` +
          'rewritten',
      );
  }

  #find(kind: AuditFinding['kind'], problem: string): void {
    if (this.#findings.length < MOST_FINDINGS)
      this.#findings.push({ kind, file: this.#file, line: this.#line, problem });
  }
}

async function* linesOf(
  file: string,
): AsyncGenerator<{ readonly text: string; readonly ended: boolean }, void, undefined> {
  let rest = '';
  for await (const chunk of createReadStream(file, { encoding: 'utf8' }) as AsyncIterable<string>) {
    const lines = (rest + chunk).split('\n');
    rest = (lines.pop() ?? '').slice(0, MOST_LINE + 1);
    for (const text of lines) yield { text, ended: true };
  }
  if (rest !== '') yield { text: rest, ended: false };
}
