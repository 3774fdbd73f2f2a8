import { expect } from 'chai';
import { appendFileSync, mkdirSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readHead } from '../../src/services/audit/audit-folder.ts';
import { rejection } from '../support/harness/rejection.ts';
import { AuditUnderTest, anEntry } from './an-audit.ts';

describe('the audit log', () => {
  let audit: AuditUnderTest;
  beforeEach(() => {
    audit = new AuditUnderTest();
  });
  afterEach(async () => {
    await audit.remove();
  });

  it('has lines with caller, operation and outcome, in a file that only its owner can read', async () => {
    await audit.run(1);

    const [begin, write, end] = audit.lines;
    expect(begin).to.include({
      seq: 1,
      kind: 'begin',
      replica: 'r',
      version: '1',
      pid: process.pid,
      prev: '0'.repeat(64),
    });
    expect(begin?.['boot']).to.match(/^[0-9a-f-]{36}$/);
    expect(write).to.include({
      seq: 2,
      kind: 'write',
      time: '2026-01-01T00:00:00.000Z',
      replica: 'r',
      requestId: 'r-0',
      namespace: 'blue',
      user: 'ada',
      keyId: 'k1',
      operation: 'claimSandbox',
      status: 201,
      prev: begin?.['hash'],
    });
    expect(end).to.include({ seq: 3, kind: 'end', prev: write?.['hash'] });
    expect(statSync(audit.files[0] ?? '').mode & 0o777).to.equal(0o600);
  });

  it('copies written lines to a second target', async () => {
    const copied: string[] = [];
    const copy = (text: string): void => void copied.push(text);
    await audit.run(3, { copy });

    expect(copied.join('')).to.equal(audit.text);
    expect(audit.text.match(/\n/g)).to.have.lengthOf(5);
  });

  it('continues its chain after a restart, and reports how the last run ended', async () => {
    await audit.run(1);
    const killed = await audit.begin();
    killed.note(anEntry());
    await audit.written(killed);
    await audit.run(0);

    expect(audit.lines.map(({ kind, after }) => [kind, after])).to.deep.equal([
      ['begin', undefined],
      ['write', undefined],
      ['end', undefined],
      ['begin', 'end'],
      ['write', undefined],
      ['begin', 'crash'],
      ['end', undefined],
    ]);
    expect(audit.files).to.have.length(1);
    expect(await audit.findings()).to.deep.equal([]);
  });

  it('starts another file when one is full, and keeps a bounded number', async () => {
    await audit.run(20, { fileBytes: 1_100, files: 3 });

    expect(audit.files).to.have.length(3);
    expect(audit.lines.at(-1)).to.include({ seq: 22, kind: 'end' });
    expect(audit.names.at(-1)).to.equal('audit-0000000000000021.jsonl');
    expect(await audit.findings()).to.deep.equal([]);
  });

  it('reports at the start that lines are missing at the end', async () => {
    await audit.run(3);
    const lines = audit.text.split('\n');
    writeFileSync(audit.files[0] ?? '', `${lines.slice(0, 3).join('\n')}\n`);
    const trail = await audit.begin();
    expect(trail.counts).to.include({ missing: 2, written: 1 });
    await trail.stop();

    expect(audit.lines[3]).to.include({ kind: 'begin', after: 'missing', missing: 2, seq: 6 });
    expect(await audit.findings()).to.deep.equal([{ kind: 'missing', file: 1, line: 1 }]);
  });

  for (const [what, damage] of [
    [
      'ends within a line',
      (file: string) => {
        truncateSync(file, statSync(file).size - 10);
      },
    ],
    [
      'has a last line that is none',
      (file: string) => {
        appendFileSync(file, 'nonsense\n');
      },
    ],
    [
      'is nothing but zeros',
      (file: string) => {
        writeFileSync(file, Buffer.alloc(512));
      },
    ],
    [
      'is empty',
      (file: string) => {
        truncateSync(file, 0);
      },
    ],
  ] as const) {
    it(`continues next to a file that ${what}, and does not change it`, async () => {
      await audit.run(2);
      damage(audit.files[0] ?? '');
      const { size } = statSync(audit.files[0] ?? '');
      rmSync(join(audit.folder, 'head'));
      await audit.run(1);

      expect(audit.files).to.have.length(2);
      expect(statSync(audit.files[0] ?? '').size).to.equal(size);
      expect(audit.text.trimEnd().split('\n').at(-1)).to.include('"kind":"end"');
    });
  }

  it('counts lost lines while it cannot be written, and reports them afterwards', async () => {
    const trail = await audit.begin({ fileBytes: 1 });
    mkdirSync(join(audit.folder, 'audit-0000000000000002.jsonl'));
    for (let at = 0; at < 10_100; at += 1) trail.note(anEntry());
    await audit.written(trail);
    expect(trail.problem).to.equal(
      "the audit can't be written: EISDIR; 10000 lines are waiting, and 100 are lost",
    );
    expect(trail.counts).to.deep.equal({
      written: 1,
      lost: 100,
      missing: 0,
      waiting: 10_000,
      unwritableMs: 0,
    });
    audit.clock.advance(900);
    expect(trail.counts.unwritableMs).to.equal(900);

    rmSync(join(audit.folder, 'audit-0000000000000002.jsonl'), { recursive: true });
    audit.clock.advance(1_000);
    await trail.settled();
    await audit.written(trail);

    expect(trail.problem).to.equal(undefined);
    expect(trail.counts).to.deep.equal({
      written: 10_002,
      lost: 100,
      missing: 0,
      waiting: 0,
      unwritableMs: 0,
    });
    expect(audit.lines.at(-1)).to.include({ kind: 'lost', count: 100, why: 'EISDIR' });
    expect((await audit.findings()).map(({ kind }) => kind)).to.deep.equal(['lost']);
    await trail.stop();
  });

  it('has a line for each of the first 60 invalid keys per minute, and one for the others', async () => {
    const trail = await audit.begin();
    for (let at = 0; at < 75; at += 1) trail.note(anEntry({ caller: undefined, status: 401 }));
    audit.clock.advance(60_000);
    await audit.written(trail);
    trail.note(anEntry({ caller: undefined, status: 401 }));
    await trail.stop();

    expect(audit.lines.filter(({ kind }) => kind === 'write')).to.have.length(61);
    expect(audit.lines.find(({ kind }) => kind === 'omitted')).to.include({
      count: 15,
      why: 'no good key',
    });
  });

  it('has a line per change, and for each of the first 60 refusals of a key per minute', async () => {
    const trail = await audit.begin();
    const loud = { namespace: 'red', team: 'red', user: 'eve', role: 'user', keyId: 'k2' };
    for (let at = 0; at < 75; at += 1) trail.note(anEntry({ caller: loud, status: 404 }));
    for (let at = 0; at < 75; at += 1) trail.note(anEntry({ caller: loud }));
    trail.note(anEntry({ status: 404 }));
    audit.clock.advance(60_000);
    await audit.written(trail);
    await trail.stop();

    const writes = audit.lines.filter(({ kind }) => kind === 'write');
    expect([60, 75, 1]).to.deep.equal([
      writes.filter(({ keyId, status }) => keyId === 'k2' && status === 404).length,
      writes.filter(({ keyId, status }) => keyId === 'k2' && status === 201).length,
      writes.filter(({ keyId }) => keyId === 'k1').length,
    ]);
    expect(
      audit.lines
        .filter(({ kind }) => kind === 'omitted')
        .map(({ count, why, keyId, user }) => ({ count, why, keyId, user })),
    ).to.deep.equal([{ count: 15, why: 'refused', keyId: 'k2', user: 'eve' }]);
  });

  it('summarizes reads in one line a minute with their count, up to 60 lines per key', async () => {
    const trail = await audit.begin();
    const caller = { namespace: 'ops', team: 'ops', user: 'root', role: 'admin', keyId: 'k3' };
    for (let at = 0; at < 5; at += 1)
      trail.count({ kind: 'read', caller, operation: 'listApiKeys' });
    for (let at = 0; at < 70; at += 1)
      trail.count({
        kind: 'open',
        caller,
        operation: 'openEndpoint',
        params: { sandboxId: `s-${at}`, endpointName: 'web' },
      });
    audit.clock.advance(60_000);
    await audit.written(trail);
    trail.count({ kind: 'read', caller, operation: 'listApiKeys' });
    await trail.stop();

    const told = audit.lines
      .filter(({ kind }) => kind === 'read' || kind === 'omitted')
      .map(({ kind, operation, count, why, user }) => ({ kind, operation, count, why, user }));
    expect(audit.lines.filter(({ kind }) => kind === 'open')).to.have.length(59);
    expect(told).to.deep.equal([
      { kind: 'read', operation: 'listApiKeys', count: 5, why: undefined, user: 'root' },
      { kind: 'omitted', operation: undefined, count: 11, why: 'reads', user: 'root' },
      { kind: 'read', operation: 'listApiKeys', count: 1, why: undefined, user: 'root' },
    ]);
  });

  it('distinguishes a bounded number of keys', async () => {
    const trail = await audit.begin();
    for (let at = 0; at < 1_100; at += 1)
      trail.count({
        kind: 'read',
        caller: { namespace: 'n', team: 't', user: 'u', role: 'admin', keyId: `k-${at}` },
        operation: 'listApiKeys',
      });
    audit.clock.advance(60_000);
    await trail.settled();
    for (let left = 3; left > 0; left -= 1) await audit.written(trail);
    await trail.stop();

    const reads = audit.lines.filter(({ kind }) => kind === 'read');
    expect(reads.find(({ keyId }) => keyId === undefined)).to.include({ count: 100 });
  });

  it('keeps the last lines in memory, including those of earlier runs', async () => {
    await audit.run(3);
    const trail = await audit.begin();
    const kinds = async (cursor?: string) =>
      (await audit.recent.before(cursor, 3)).map(
        ({ line }) => (JSON.parse(line) as { readonly seq: number }).seq,
      );

    expect(await kinds()).to.deep.equal([6, 5, 4]);
    const third = (await audit.recent.before(undefined, 3))[2];
    expect(await kinds(third?.cursor)).to.deep.equal([3, 2, 1]);
    await trail.stop();
  });

  it('stores the position of its chain in a separate file', async () => {
    await audit.run(2);

    expect(readHead(audit.folder)).to.deep.equal({ seq: 4, hash: audit.lines.at(-1)?.['hash'] });
  });

  it('omits a daemon that was stopped during its start', async () => {
    await audit.run(1);
    const before = audit.text;
    const trail = audit.notBegun();
    const starting = trail.start();
    await trail.stop();
    await starting;
    trail.note(anEntry());
    await audit.written(trail);

    expect(audit.text).to.equal(before);
  });

  it('fails to start if its folder is unusable', async () => {
    writeFileSync(join(audit.folder, 'file'), '');

    expect(
      await rejection(audit.begin({ folder: join(audit.folder, 'file', 'below') })),
    ).to.include({ code: 'ENOTDIR' });
  });
});
