import { join } from 'node:path';
import type { Assembly } from './assembly/assembly.ts';
import { AuditAnchor, anchorPlace } from '../services/audit/audit-anchor.ts';
import { AuditTrail, type AuditTrailOptions } from '../services/audit/audit-trail.ts';
import type { Config } from './config/config.ts';
import type { Log } from '../contracts/log.ts';
import { version } from './process/version.ts';

export const openAudit = (
  { audit, dataDir }: Config,
  {
    parts,
    log,
    replica,
    auditCopy,
  }: {
    readonly parts: Assembly;
    readonly log: Log;
    readonly replica: string;
    readonly auditCopy?: AuditTrailOptions['copy'];
  },
): AuditTrail | undefined => {
  if (audit.mode === 'off') return undefined;
  const { folder = join(dataDir, 'audit'), fileBytes, files } = audit;
  const { clock, recentAudit: recent } = parts;
  const anchor =
    audit.anchor === undefined
      ? undefined
      : new AuditAnchor({ place: anchorPlace(audit.anchor), replica, clock, log });
  return new AuditTrail({
    files: { folder, fileBytes, files },
    replica,
    version: version(),
    clock,
    log,
    recent,
    anchor,
    copy: audit.stdout === 'on' ? auditCopy : undefined,
  });
};
