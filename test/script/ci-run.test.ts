import { expect } from 'chai';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CI_RUN = fileURLToPath(new URL('../../.ci/run', import.meta.url));

describe('.ci/run', () => {
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
  const run = (
    others: string,
    kubernetes: string,
    realNode = "echo '0 passed, 0 failed, 1 skipped'",
  ): { readonly code: number | null; readonly lastLine: string } => {
    const { code, lines } = outputOf(others, kubernetes, realNode);
    return { code, lastLine: lines.at(-1) ?? '' };
  };
  const outputOf = (
    others: string,
    kubernetes: string,
    realNode: string,
    daemons = "echo '0 passed, 0 failed, 0 skipped'",
    waiting = "echo '0 passed, 0 failed, 0 skipped'",
    otherNodes = "echo '0 passed, 0 failed, 0 skipped'",
    machine = "echo '0 passed, 0 failed, 0 skipped'",
  ): { readonly code: number | null; readonly lines: readonly string[] } => {
    program(
      'script/test',
      `case $* in --others) ${others} ;; --other-nodes) ${otherNodes} ;; --daemons) ${daemons} ;; --waiting) ${waiting} ;; kubernetes) ${kubernetes} ;; 'kubernetes --real-node --pods') ${realNode} ;; 'kubernetes --real-node --machine') ${machine} ;; esac`,
    );
    const { status, stdout } = spawnSync('bash', [join(folder, '.ci/run')], {
      encoding: 'utf8',
      timeout: 30_000,
      env: { ...process.env, PATH: `${join(folder, 'bin')}:${process.env['PATH'] ?? ''}` },
    });
    return { code: status, lines: stdout.trimEnd().split('\n') };
  };

  it('sums all runs in its last line', () => {
    expect(
      run("echo '5 passed, 0 failed, 1 skipped'", "echo '7 passed, 0 failed, 2 skipped'"),
    ).to.deep.equal({ code: 0, lastLine: '12 passed, 0 failed, 4 skipped' });
    expect(
      run(
        "echo '5 passed, 0 failed, 1 skipped'",
        "echo '7 passed, 0 failed, 2 skipped'",
        "echo '30 passed, 0 failed, 0 skipped'",
      ),
    ).to.deep.equal({ code: 0, lastLine: '42 passed, 0 failed, 3 skipped' });
  });

  it('fails when one fails, and runs all', () => {
    expect(
      run("echo '5 passed, 1 failed, 0 skipped'; exit 1", "echo '7 passed, 0 failed, 0 skipped'"),
    ).to.deep.equal({ code: 1, lastLine: '12 passed, 1 failed, 1 skipped' });
    expect(
      run("echo '5 passed, 0 failed, 0 skipped'", "echo '0 passed, 1 failed, 0 skipped'; exit 1"),
    ).to.deep.equal({ code: 1, lastLine: '5 passed, 1 failed, 1 skipped' });
    expect(
      run(
        "echo '5 passed, 0 failed, 0 skipped'",
        "echo '7 passed, 0 failed, 0 skipped'",
        "echo '3 passed, 2 failed, 0 skipped'; exit 1",
      ),
    ).to.deep.equal({ code: 1, lastLine: '15 passed, 2 failed, 0 skipped' });
  });

  it('counts a run as failed that ends without a sum, or badly with a good one', () => {
    expect(run("echo '5 passed, 0 failed, 0 skipped'", 'exit 137')).to.deep.equal({
      code: 1,
      lastLine: '5 passed, 1 failed, 1 skipped',
    });
    expect(
      run("echo '5 passed, 0 failed, 0 skipped'; exit 3", "echo '7 passed, 0 failed, 0 skipped'"),
    ).to.deep.equal({ code: 1, lastLine: '12 passed, 1 failed, 1 skipped' });
  });

  it('shows what each part prints after its name, and its time', () => {
    const { code, lines } = outputOf(
      "echo one; echo two; echo '1 passed, 0 failed, 0 skipped'",
      "echo three; echo '1 passed, 0 failed, 0 skipped'",
      "echo four; echo '0 passed, 0 failed, 1 skipped'",
      "echo five; echo '3 passed, 0 failed, 0 skipped'",
      "echo six; echo '4 passed, 0 failed, 0 skipped'",
      "echo seven; echo '2 passed, 0 failed, 0 skipped'",
      "echo eight; echo '1 passed, 0 failed, 0 skipped'",
    );

    expect(lines).to.include.members([
      'others| one',
      'others| two',
      'kubernetes| three',
      'real-node| four',
      'daemons| five',
      'waiting| six',
      'nodes| seven',
      'machine| eight',
    ]);
    expect(lines.filter((line) => /^== script\/test .*: \d+ s$/.test(line))).to.have.length(7);
    expect([code, lines.at(-1)]).to.deep.equal([0, '12 passed, 0 failed, 1 skipped']);
  });

  it('runs daemons and kubernetes in turn, beside the rest and then the real node, and what looks at the machine alone', () => {
    const alone = (name: string, place: string): string =>
      `mkdir ${place} || echo '${name} was not alone'; echo '${name} ran'; rmdir ${place}; touch ${name}; echo '1 passed, 0 failed, 0 skipped'`;
    const after = (name: string, then: string): string =>
      `until [ -e ${name} ]; do sleep 0.1; done; ${then}`;
    const { code, lines } = outputOf(
      after('daemons', alone('rest', 'rests')),
      // ends only when the lane beside it has come to its end
      after('node', alone('cluster', 'clusters')),
      `[ -e rest ] || echo 'node was not alone'; ${alone('node', 'nodes')}`,
      alone('daemons', 'clusters'),
      "echo '1 passed, 0 failed, 0 skipped'",
      "echo '1 passed, 0 failed, 0 skipped'",
      `[ -e cluster ] || echo 'machine was not alone'; ${alone('machine', 'nodes')}`,
    );

    expect(lines.filter((line) => /ran$|alone$/.test(line))).to.have.members([
      'daemons| daemons ran',
      'others| rest ran',
      'real-node| node ran',
      'kubernetes| cluster ran',
      'machine| machine ran',
    ]);
    expect([code, lines.at(-1)]).to.deep.equal([0, '7 passed, 0 failed, 0 skipped']);
  });

  it('does not let a part of one lane that fails end the other', () => {
    const { lines } = outputOf(
      'exit 3',
      "echo '2 passed, 0 failed, 0 skipped'",
      "echo '4 passed, 0 failed, 0 skipped'",
      'kill -9 $$',
    );

    expect(lines.slice(-3)).to.deep.equal([
      'FAILED: others ended with 3, without a sum',
      'FAILED: daemons ended with 137, without a sum',
      '6 passed, 2 failed, 0 skipped',
    ]);
  });

  it('says each failure and each skip again in the end', () => {
    const { lines } = outputOf(
      "echo 'FAILED: a: no'; echo '1 passed, 1 failed, 0 skipped'; exit 1",
      "echo 'skipped: b: no node'; echo '1 passed, 0 failed, 1 skipped'",
      'exit 137',
    );

    expect(lines.slice(-4)).to.deep.equal([
      'FAILED: a: no',
      'skipped: b: no node',
      'FAILED: real-node ended with 137, without a sum',
      '2 passed, 2 failed, 1 skipped',
    ]);
  });
});
