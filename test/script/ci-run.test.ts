import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CI_RUN = fileURLToPath(new URL('../../.ci/run', import.meta.url));

const ARGUMENTS = {
  others: '--others',
  sandboxes: '--sandboxes',
  waiting: '--waiting',
  nodes: '--other-nodes',
  daemons: '--daemons',
  kubernetes: 'kubernetes',
  'real-node': 'kubernetes --real-node --pods',
  machine: 'kubernetes --real-node --machine',
};
type Part = keyof typeof ARGUMENTS;

const sum = (passed: number, failed = 0, skipped = 0): string =>
  `echo '${passed} passed, ${failed} failed, ${skipped} skipped'${failed > 0 ? '; exit 1' : ''}`;

describe('.ci/run', function () {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-ci-'));
    for (const name of ['.ci', 'script', 'bin']) mkdirSync(join(folder, name));
    cpSync(CI_RUN, join(folder, '.ci/run'));
    for (const name of ['script/bootstrap', 'script/control-plane', 'script/real-node', 'bin/npm'])
      program(name, 'exit 0');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const program = (name: string, text: string): void =>
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  const outputOf = (
    parts: Partial<Record<Part, string>>,
  ): { readonly code: number | null; readonly lines: readonly string[] } => {
    const cases = Object.entries(ARGUMENTS).map(
      ([part, args]) => `'${args}') ${parts[part as Part] ?? sum(0)} ;;`,
    );
    program('script/test', `case "$*" in ${cases.join(' ')} esac`);
    const { status, stdout } = spawnSync('bash', [join(folder, '.ci/run')], {
      encoding: 'utf8',
      timeout: 30_000,
      env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` },
    });
    return { code: status, lines: stdout.trimEnd().split('\n') };
  };
  const run = (parts: Partial<Record<Part, string>>) => {
    const { code, lines } = outputOf(parts);
    return [code, lines.at(-1)];
  };

  it('sums all runs in its last line', () => {
    expect(run({ others: sum(5, 0, 1), kubernetes: sum(7, 0, 2) })).to.deep.equal([
      ...[0, '12 passed, 0 failed, 3 skipped'],
    ]);
    expect(
      run({ others: sum(5, 0, 1), kubernetes: sum(7, 0, 2), 'real-node': sum(30) }),
    ).to.deep.equal([0, '42 passed, 0 failed, 3 skipped']);
  });

  it('fails when one fails, and runs all', () => {
    for (const part of Object.keys(ARGUMENTS) as Part[])
      expect(run({ others: sum(5), kubernetes: sum(7), [part]: sum(3, 2) })).to.deep.equal([
        1,
        `${part === 'others' ? 10 : part === 'kubernetes' ? 8 : 15} passed, 2 failed, 0 skipped`,
      ]);
  });

  it('counts a run as failed that ends without a sum, or badly with a good one', () => {
    expect(run({ others: sum(5), kubernetes: 'exit 137' })).to.deep.equal([
      ...[1, '5 passed, 1 failed, 0 skipped'],
    ]);
    expect(run({ others: `${sum(5)}; exit 3`, kubernetes: sum(7) })).to.deep.equal([
      ...[1, '12 passed, 1 failed, 0 skipped'],
    ]);
  });

  it('shows what each part prints after its name, and its time', () => {
    const parts = Object.keys(ARGUMENTS) as Part[];

    const { code, lines } = outputOf(
      Object.fromEntries(parts.map((part) => [part, `echo this is ${part}; ${sum(1)}`])),
    );

    expect(lines).to.include.members(parts.map((part) => `${part}| this is ${part}`));
    expect(lines.filter((line) => /^== script\/test .*: \d+ s$/.test(line))).to.have.length(
      parts.length,
    );
    expect([code, lines.at(-1)]).to.deep.equal([0, `${parts.length} passed, 0 failed, 0 skipped`]);
  });

  it('runs four lanes beside each other, each in turn, and what looks at the machine alone', () => {
    const firsts = ['others', 'sandboxes', 'waiting', 'daemons'] as const;
    const allOf = (names: readonly string[]): string =>
      `until ${names.map((name) => `[ -e ${name} ]`).join(' && ')}; do sleep 0.1; done`;
    const began = (part: string): string => `touch ${part}`;
    // ends only when all firsts of the lanes have begun
    const first = (part: Part): string =>
      `${began(part)}; ${allOf(firsts)}; touch ${part}-over; ${sum(1)}`;
    const then = (part: Part, over: Part): string =>
      `[ -e ${over}-over ] || echo 'too early'; touch ${part}-over; ${sum(1)}`;
    const { code, lines } = outputOf({
      ...Object.fromEntries(firsts.map((part) => [part, first(part)])),
      kubernetes: then('kubernetes', 'waiting'),
      nodes: then('nodes', 'sandboxes'),
      'real-node': then('real-node', 'daemons'),
      machine: `for part in others kubernetes nodes real-node; do [ -e $part-over ] || echo 'too early'; done; ${sum(1)}`,
    });

    expect(lines.filter((line) => line.endsWith('too early'))).to.deep.equal([]);
    expect([code, lines.at(-1)]).to.deep.equal([0, '8 passed, 0 failed, 0 skipped']);
  });

  it('does not let a part of one lane that fails end the other', () => {
    const { lines } = outputOf({
      others: 'exit 3',
      kubernetes: sum(2),
      'real-node': sum(4),
      daemons: 'kill -9 $$',
    });

    expect(lines.slice(-3)).to.deep.equal([
      'FAILED: others ended with 3, without a sum',
      'FAILED: daemons ended with 137, without a sum',
      '6 passed, 2 failed, 0 skipped',
    ]);
  });

  it('says each failure and each skip again in the end', () => {
    const { lines } = outputOf({
      others: `echo 'FAILED: a: no'; ${sum(1, 1)}`,
      kubernetes: `echo 'skipped: b: no node'; ${sum(1, 0, 1)}`,
      'real-node': 'exit 137',
    });

    expect(lines.slice(-4)).to.deep.equal([
      'FAILED: a: no',
      'skipped: b: no node',
      'FAILED: real-node ended with 137, without a sum',
      '2 passed, 2 failed, 1 skipped',
    ]);
  });

  it('waits for what is built meanwhile with those parts alone that need it', () => {
    program('script/real-node', 'until [ -e over ]; do sleep 0.1; done; touch built');
    const isBuilt = `[ -e built ] || echo 'too early'; ${sum(1)}`;

    const { code, lines } = outputOf({
      others: `touch over; ${sum(5)}`,
      kubernetes: isBuilt,
      'real-node': isBuilt,
    });

    expect(lines.filter((line) => line.endsWith('too early'))).to.deep.equal([]);
    expect([code, lines.at(-1)]).to.deep.equal([0, '7 passed, 0 failed, 0 skipped']);
  });
});
