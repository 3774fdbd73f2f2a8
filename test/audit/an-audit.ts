import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { auditFiles, readHead } from '../../src/services/audit/audit-folder.ts';
import { AuditTrail, type AuditTrailOptions } from '../../src/services/audit/audit-trail.ts';
import { RecentAuditRing } from '../../src/services/audit/recent-audit-ring.ts';
import { type AuditFinding, verifyAudit } from '../../src/services/audit/verify-audit.ts';
import type { AuditEntry } from '../../src/contracts/audit.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';

export const anEntry = (given: Partial<AuditEntry> = {}): AuditEntry => ({
  requestId: 'r-1',
  caller: { namespace: 'blue', team: 'blue', user: 'ada', role: 'user', keyId: 'k1' },
  operation: 'claimSandbox',
  status: 201,
  ...given,
});

type GivenAudit = Partial<Omit<AuditTrailOptions, 'files'>> & {
  readonly folder?: string;
  readonly fileBytes?: number;
  readonly files?: number;
};

/** An audit in a folder of its own. */
export class AuditUnderTest {
  readonly folder = mkdtempSync(join(tmpdir(), 'sandpool-audit-'));
  readonly clock = new TestClock();
  recent = new RecentAuditRing();
  readonly #trails: AuditTrail[] = [];

  async begin(given: GivenAudit = {}): Promise<AuditTrail> {
    const trail = this.notBegun(given);
    await trail.start();
    this.#trails.push(trail);
    return trail;
  }

  notBegun(given: GivenAudit = {}): AuditTrail {
    const { folder = this.folder, fileBytes = 1_048_576, files = 16, ...options } = given;
    this.recent = new RecentAuditRing();
    return new AuditTrail({
      files: { folder, fileBytes, files },
      replica: 'r',
      version: '1',
      clock: this.clock,
      log: quietLog,
      recent: this.recent,
      ...options,
    });
  }

  /** A run that notes so many writes, each in its own moment, and stops. */
  async run(writes: number, given: GivenAudit = {}): Promise<void> {
    const trail = await this.begin(given);
    for (let at = 0; at < writes; at += 1) {
      trail.note(anEntry({ requestId: `r-${at}` }));
      await this.written(trail);
    }
    await trail.stop();
  }

  /** What was noted is in the file. */
  async written(trail: AuditTrail): Promise<void> {
    this.clock.advance(50);
    await trail.settled();
  }

  get files(): readonly string[] {
    return auditFiles(this.folder);
  }
  get names(): readonly string[] {
    return this.files.map((file) => basename(file));
  }
  get text(): string {
    return this.files.map((file) => readFileSync(file, 'utf8')).join('');
  }
  get lines(): readonly Readonly<Record<string, unknown>>[] {
    return this.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  async findings(): Promise<
    readonly (Pick<AuditFinding, 'kind' | 'line'> & { readonly file: number })[]
  > {
    const { findings } = await verifyAudit(this.files, [readHead(this.folder) ?? []].flat());
    return findings.map(({ kind, file, line }) => ({ kind, file: this.files.indexOf(file), line }));
  }

  async remove(): Promise<void> {
    for (const trail of this.#trails) await trail.stop(); // those of the test that were killed
    rmSync(this.folder, { recursive: true });
  }
}
