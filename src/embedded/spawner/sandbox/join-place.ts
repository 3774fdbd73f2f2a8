import type { InsideIds } from '../protocol.ts';
import type { Bare } from './bare-homes.ts';
import type { ProcessIdentity } from './process-identity.ts';

export interface JoinPlace {
  readonly init: ProcessIdentity;
  readonly user: InsideIds | undefined;
  readonly cgroups: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingDir: string;
  readonly bare: Bare | undefined;
}
