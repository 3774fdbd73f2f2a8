/** Takes what the spawner has to say to its daemon's log; without a daemon it is lost. */
export interface SpawnerLog {
  info(event: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(event: string, fields?: Readonly<Record<string, unknown>>): void;
  error(event: string, fields?: Readonly<Record<string, unknown>>): void;
}
