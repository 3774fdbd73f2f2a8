import { expect } from 'chai';
import { readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { chainLine, readChainLine } from '../../src/services/audit/audit-chain.ts';
import { readHead } from '../../src/services/audit/audit-folder.ts';
import { verifyAudit } from '../../src/services/audit/verify-audit.ts';
import { AuditUnderTest } from './an-audit.ts';

describe('the verification of an audit log', () => {
  let audit: AuditUnderTest;
  /** Three files of several lines each. */
  beforeEach(async () => {
    audit = new AuditUnderTest();
    await audit.run(8, { fileBytes: 1_100 });
  });
  afterEach(async () => {
    await audit.remove();
  });

  const file = (at: number): string => audit.files[at] ?? '';
  const edit = (at: number, change: (lines: string[]) => readonly string[]): void => {
    const lines = readFileSync(file(at), 'utf8').trimEnd().split('\n');
    writeFileSync(file(at), `${change(lines).join('\n')}\n`);
  };

  it('finds nothing in a complete log', async () => {
    const report = await verifyAudit(audit.files, [readHead(audit.folder) ?? []].flat());

    expect(audit.files).to.have.length(3);
    expect(report).to.include({ files: 3, lines: 10, first: 1, crashes: 0 });
    expect(report.findings).to.deep.equal([]);
    expect(report.last).to.deep.equal(readHead(audit.folder));
  });

  it('finds nothing if the oldest file was rotated away', async () => {
    rmSync(file(0));

    expect(await audit.findings()).to.deep.equal([]);
  });

  it('finds a changed line', async () => {
    edit(1, (lines) =>
      lines.map((line, at) => (at === 1 ? line.replace('"user":"ada"', '"user":"eve"') : line)),
    );

    expect(await audit.findings()).to.deep.equal([{ kind: 'changed', file: 1, line: 2 }]);
  });

  it('finds a changed line with a new hash', async () => {
    edit(1, (lines) =>
      lines.map((line, at) => (at === 1 ? rewritten(line, { user: 'eve' }) : line)),
    );

    expect(await audit.findings()).to.deep.equal([{ kind: 'changed', file: 1, line: 3 }]);
  });

  it('finds a missing line', async () => {
    edit(1, (lines) => lines.filter((_, at) => at !== 1));

    expect(await audit.findings()).to.deep.equal([{ kind: 'missing', file: 1, line: 2 }]);
  });

  it('finds swapped lines', async () => {
    edit(1, ([one = '', two = '', ...rest]) => [two, one, ...rest]);

    expect((await audit.findings()).map(({ kind }) => kind)).to.include.members([
      'reordered',
      'missing',
    ]);
  });

  it('finds a missing file, and files with swapped names', async () => {
    const [, one = '', two = ''] = audit.files;
    renameSync(one, `${one}.kept`);
    expect(await audit.findings()).to.deep.equal([{ kind: 'missing', file: 1, line: 1 }]);

    renameSync(two, one);
    renameSync(`${one}.kept`, two);
    const found = await audit.findings();
    expect(found)
      .to.deep.include({ kind: 'reordered', file: 1, line: 1 })
      .and.to.deep.include({ kind: 'reordered', file: 2, line: 1 });
  });

  it('finds a truncated end, and a file that ends within a line', async () => {
    const bytes = readFileSync(file(2)).length;
    edit(2, (lines) => lines.slice(0, -1));
    expect(await audit.findings()).to.deep.include({ kind: 'cut', file: 2, line: 1 });

    truncateSync(file(2), Math.floor(bytes / 3));
    expect((await audit.findings()).map(({ kind }) => kind)).to.deep.equal(['cut', 'cut']);
  });

  it('finds an invalid line of any length', async () => {
    edit(1, (lines) => lines.map((line, at) => (at === 1 ? 'x'.repeat(200_000) : line)));
    const found = await audit.findings();

    expect(found[0]).to.deep.equal({ kind: 'changed', file: 1, line: 2 });
  });

  it('finds a rewritten chain, by a hash stored elsewhere', async () => {
    const kept = readHead(audit.folder);
    let end = { seq: 0, hash: '0'.repeat(64) };
    for (const path of audit.files) {
      const lines = readFileSync(path, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => {
          const next = chainLine(end, bare(line, { user: 'eve' }));
          end = next.end;
          return next.line;
        });
      writeFileSync(path, `${lines.join('\n')}\n`);
    }

    expect((await verifyAudit(audit.files)).findings).to.deep.equal([]);
    expect(
      (await verifyAudit(audit.files, [kept ?? []].flat())).findings.map(({ kind }) => kind),
    ).to.deep.equal(['changed']);
  });
});

const bare = (line: string, change: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const { seq: _seq, prev: _prev, ...fields } = readChainLine(line)?.fields ?? {};
  return { ...fields, ...change };
};

/** With a hash that fits the new text. */
const rewritten = (line: string, change: Readonly<Record<string, unknown>>): string => {
  const { seq = 0, prev = '' } = readChainLine(line) ?? {};
  return chainLine({ seq: seq - 1, hash: prev }, bare(line, change)).line;
};
