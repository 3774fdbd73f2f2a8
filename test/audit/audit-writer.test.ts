import { expect } from 'chai';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { auditFiles, HEAD_FILE } from '../../src/services/audit/audit-folder.ts';
import { AuditWriter } from '../../src/services/audit/audit-writer.ts';
import { rejection } from '../support/harness/rejection.ts';

describe('the writer of audit files', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandpool-audit-'));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it('leaves no line of a rejected call, even if only the head failed', async () => {
    symlinkSync('/dev/full', join(folder, HEAD_FILE));
    const writer = await AuditWriter.open({ folder, fileBytes: 1_000, files: 2 }, undefined);

    expect(
      await rejection(writer.append(['{"seq":1}'], 1, { seq: 1, hash: '0'.repeat(64) })),
    ).to.include({ code: 'ENOSPC' });
    expect(auditFiles(folder).map((file) => readFileSync(file, 'utf8'))).to.deep.equal(['']);
    await writer.close();
  });
});
