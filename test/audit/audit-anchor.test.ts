import { expect } from 'chai';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  anchorPlace,
  AuditAnchor,
  type AnchorPlace,
} from '../../src/services/audit/audit-anchor.ts';
import { chainLine, readChainLine } from '../../src/services/audit/audit-chain.ts';
import { verifyAudit } from '../../src/services/audit/verify-audit.ts';
import { readProcessStat } from '../../src/embedded/spawner/sandbox/process-identity.ts';
import { killIfAlive } from '../support/harness/kill-if-alive.ts';
import { eventually } from '../support/harness/eventually.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { rejection } from '../support/harness/rejection.ts';
import { AuditUnderTest, anEntry } from './an-audit.ts';

/** Of a place that is never told to give up. */
const NEVER = new AbortController().signal;

const END = (seq: number) => ({ seq, hash: String(seq % 10).repeat(64) });

describe('the anchor of an audit log', () => {
  let audit: AuditUnderTest;
  let told: string[];
  let failing: Error | undefined;
  beforeEach(() => {
    audit = new AuditUnderTest();
    told = [];
    failing = undefined;
  });
  afterEach(async () => {
    await audit.remove();
  });

  const anAnchor = (
    place: AnchorPlace = async (line) => {
      if (failing) throw failing;
      told.push(line);
    },
  ) => new AuditAnchor({ place, replica: 'r', clock: audit.clock, log: quietLog });
  const passes = async (anchor: AuditAnchor, ms: number): Promise<void> => {
    audit.clock.advance(ms);
    await anchor.settled();
  };

  it("records the chain's position at the start, and once a minute after changes", async () => {
    const anchor = anAnchor();
    anchor.moved(END(1));
    await passes(anchor, 0);
    anchor.moved(END(2));
    anchor.moved(END(3));
    await passes(anchor, 59_999);
    expect(told).to.deep.equal([`2026-01-01T00:00:00.000Z r 1:${'1'.repeat(64)}`]);
    await passes(anchor, 1);
    await passes(anchor, 600_000);

    expect(told.slice(1)).to.deep.equal([`2026-01-01T00:01:00.000Z r 3:${'3'.repeat(64)}`]);
  });

  it('records the end of the chain when the daemon stops', async () => {
    const trail = await audit.begin({ anchor: anAnchor() });
    trail.note(anEntry());
    await audit.written(trail);
    await trail.stop();

    const last = audit.lines.at(-1);
    expect(told.at(-1)).to.match(
      new RegExp(` r ${String(last?.['seq'])}:${String(last?.['hash'])}$`),
    );
  });

  it('retries a failed record, and reports the failure in the meantime', async () => {
    const anchor = anAnchor();
    const trail = await audit.begin({ anchor });
    failing = new Error('no space');
    trail.note(anEntry());
    await audit.written(trail);
    audit.clock.advance(1_000);
    await eventually(() => {
      audit.clock.advance(0); // the disk is real, and has it now
      return trail.problem !== undefined;
    }, 'the anchor is tried');
    expect(trail.problem).to.equal(
      "the latest audit entry can't be sent to audit.anchor: no space",
    );
    expect(told).to.deep.equal([]);
    failing = undefined;
    await passes(anchor, 60_000);

    expect(told).to.have.length(1);
    expect(trail.problem).to.equal(undefined);
    await trail.stop();
  });

  it('does not wait for a target that never answers', async () => {
    const anchor = anAnchor(() => new Promise(() => {}));
    anchor.moved(END(1));
    audit.clock.advance(0);
    await passes(anchor, 10_000);
    expect(anchor.problem).to.include('it took more than 10 s');
    const stopped = anchor.stop();
    await Promise.resolve();
    audit.clock.advance(2_000);
    await stopped;
  });

  it('stops within 2 s even during a record to a silent target', async () => {
    const signals: AbortSignal[] = [];
    const anchor = anAnchor((_line, signal) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    anchor.moved(END(1));
    audit.clock.advance(0);
    anchor.moved(END(2));
    let isOver = false;
    void anchor.stop().then(() => {
      isOver = true;
    });
    audit.clock.advance(2_000);
    await eventually(() => isOver, 'it has stopped');
    expect(signals.map(({ aborted }) => aborted)).to.deep.equal([true]);
    expect(anchor.problem).to.include('it took more than 2 s');
  });

  it('detects a rewritten and a truncated chain', async () => {
    const trail = await audit.begin({ anchor: anAnchor() });
    for (let at = 0; at < 3; at += 1) trail.note(anEntry());
    await audit.written(trail);
    await trail.stop();
    const known = told
      .map((line) => /(\d+):(\w+)$/.exec(line) ?? [])
      .map(([, seq, hash]) => ({ seq: Number(seq), hash: hash ?? '' }));
    expect((await verifyAudit(audit.files, known)).findings).to.deep.equal([]);

    const [file = ''] = audit.files;
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n');
    let end = { seq: 0, hash: '0'.repeat(64) };
    writeFileSync(
      file,
      `${lines
        .map((line) => {
          const { seq: _seq, prev: _prev, ...fields } = readChainLine(line)?.fields ?? {};
          const next = chainLine(end, { ...fields, user: 'eve' });
          end = next.end;
          return next.line;
        })
        .join('\n')}\n`,
    );
    expect((await verifyAudit(audit.files)).findings).to.deep.equal([]);
    expect((await verifyAudit(audit.files, known)).findings.map(({ kind }) => kind)).to.include(
      'changed',
    );
    writeFileSync(file, `${lines.slice(0, 2).join('\n')}\n`);
    expect((await verifyAudit(audit.files, known)).findings.map(({ kind }) => kind)).to.include(
      'cut',
    );
  });
});

describe('the target of an anchor', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-anchor-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('can be a growing file that only its owner can read', async () => {
    const path = join(folder, 'anchors');
    await anchorPlace(`file:${path}`)('one', NEVER);
    await anchorPlace(`file:${path}`)('two', NEVER);

    expect(readFileSync(path, 'utf8')).to.equal('one\ntwo\n');
    expect(statSync(path).mode & 0o777).to.equal(0o600);
  });

  it("can be a program that reads the line, without the daemon's variables", async () => {
    const path = join(folder, 'tell');
    writeFileSync(
      path,
      `#!/bin/sh\ncat > '${folder}/told'; env | grep -c SANDPOOL >> '${folder}/told'; true\n`,
    );
    chmodSync(path, 0o700);
    process.env['SANDPOOL_TEST_OF_ANCHORS'] = 'secret';
    await anchorPlace(`command:${path}`)('a line', NEVER).finally(() => {
      delete process.env['SANDPOOL_TEST_OF_ANCHORS'];
    });

    expect(readFileSync(join(folder, 'told'), 'utf8')).to.equal('a line\n0\n');
  });

  it('can be a program, which is killed with its children if it takes too long', async () => {
    const path = join(folder, 'tell');
    const pids = join(folder, 'pids');
    writeFileSync(
      path,
      `#!/bin/sh\nsleep 1000 &\necho "$$ $!" > '${pids}.new'\nmv '${pids}.new' '${pids}'\nwait\n`,
    );
    chmodSync(path, 0o700);
    const late = new AbortController();
    const failed = rejection(anchorPlace(`command:${path}`)('a line', late.signal));
    await eventually(() => existsSync(pids), 'it runs');
    const running = readFileSync(pids, 'utf8').trim().split(' ').map(Number);
    try {
      late.abort();
      await eventually(
        () => running.every((pid) => (readProcessStat(pid)?.state ?? 'Z') === 'Z'),
        'nothing of it runs',
      );
    } finally {
      for (const pid of running) killIfAlive(pid);
    }
    expect((await failed).message).to.equal(`${path} ended with SIGKILL`);
  });

  it('can be a program that has ended, even if its children hold its output open', async () => {
    const path = join(folder, 'tell');
    const left = join(folder, 'left');
    writeFileSync(
      path,
      `#!/bin/sh\nsetsid sleep 1000 &\necho $! > '${left}.new'\nmv '${left}.new' '${left}'\n`,
    );
    chmodSync(path, 0o700);
    let isTold = false;
    const told = anchorPlace(`command:${path}`)('a line', NEVER).then(() => {
      isTold = true;
    });
    await eventually(() => existsSync(left), 'it runs');
    try {
      await eventually(() => isTold, 'it is told');
    } finally {
      killIfAlive(Number(readFileSync(left, 'utf8')));
    }
    await told;
  });

  it('can be the syslog of the machine', async () => {
    const got: string[] = [];
    const syslog = createServer((connection) => {
      connection.setEncoding('utf8').on('data', (text: string) => got.push(text));
    });
    const socket = join(folder, 'log');
    syslog.listen(socket);
    await once(syslog, 'listening');
    await anchorPlace('syslog', socket)('a line', NEVER);
    await eventually(() => got.join('').includes('a line'), 'syslog has the line');
    syslog.close();

    expect(got.join('')).to.match(/^<37>.*sandpool-audit: a line/);
  });

  it('reports that no syslog listens', async () => {
    const socket = join(folder, 'log');

    expect((await rejection(anchorPlace('syslog', socket)('a line', NEVER))).message).to.match(
      /^logger ended with 1: .*log: No such file or directory/,
    );
  });

  it('reports the error output of a program, and a missing program', async () => {
    const path = join(folder, 'tell');
    writeFileSync(path, '#!/bin/sh\necho out of paper >&2; exit 3\n');
    chmodSync(path, 0o700);

    expect((await rejection(anchorPlace(`command:${path}`)('a line', NEVER))).message).to.equal(
      `${path} ended with 3: out of paper`,
    );
    expect(
      (await rejection(anchorPlace(`command:${folder}/nothing`)('a line', NEVER))).message,
    ).to.include('ENOENT');
  });
});
