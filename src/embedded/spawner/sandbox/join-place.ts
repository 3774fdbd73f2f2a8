import type { InsideIds } from '../protocol.ts';
import type { Bare } from './bare-homes.ts';
import type { ProcessIdentity } from './process-identity.ts';

/** The place at which a command joins a sandbox. */
export interface JoinPlace {
  readonly init: ProcessIdentity;
  /** Absent for a sandbox without an image. */
  readonly user: InsideIds | undefined;
  readonly cgroups: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  readonly bare: Bare | undefined;
}
