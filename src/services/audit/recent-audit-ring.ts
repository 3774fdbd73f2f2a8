import {
  type AuditLine,
  type RecentAudit,
  type RecentAuditLine,
  RECENT_AUDIT_LINES,
} from '../../contracts/audit.ts';

export class RecentAuditRing implements RecentAudit {
  #lines: AuditLine[] = [];
  #number = 0;

  add(lines: readonly AuditLine[]): void {
    for (const line of lines) this.#lines.push(line);
    if (this.#lines.length < 2 * RECENT_AUDIT_LINES) return;
    this.#number += this.#lines.length - RECENT_AUDIT_LINES;
    this.#lines = this.#lines.slice(-RECENT_AUDIT_LINES);
  }

  restore(lines: readonly AuditLine[]): void {
    this.add(lines.slice(-RECENT_AUDIT_LINES));
  }

  async before(cursor: string | undefined, most: number): Promise<readonly RecentAuditLine[]> {
    const oldest = Math.max(0, this.#lines.length - RECENT_AUDIT_LINES);
    const end =
      cursor === undefined
        ? this.#lines.length
        : Math.min(Number(cursor) - this.#number, this.#lines.length);
    const found: RecentAuditLine[] = [];
    for (let at = end - 1; at >= oldest && found.length < most; at -= 1)
      found.push({ cursor: String(this.#number + at), line: this.#lines[at] ?? '' });
    return found;
  }
}
