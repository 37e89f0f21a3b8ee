// The expiring cache of "The Opposite of a Bloom Filter", Guava's, beside the article's array of ids with atomic
// exchange: the heap that an id takes, and the copies that are missed. The table goes to the standard output.
import com.google.common.base.Ticker;
import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.IntFunction;

class ExpiringCache {
  static final int SLOTS = 131_072;

  // 16 bytes, as lethe's hashes have.
  record Id(long a, long b) {
    static Id of(long number) {
      return new Id(mix(2 * number + 1), mix(2 * number + 2));
    }

    // SplitMix64: all numbers have different hashes.
    private static long mix(long number) {
      long z = number * 0x9e3779b97f4a7c15L;
      z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
      z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
      return z ^ (z >>> 31);
    }
  }

  // True if the id is contained. It is afterwards.
  interface Filter {
    boolean containsAndAdd(Id id);
  }

  static Filter opposite(int slots) {
    AtomicReferenceArray<Id> ids = new AtomicReferenceArray<>(slots);
    return id -> id.equals(ids.getAndSet((int) Long.remainderUnsigned(id.a(), slots), id));
  }

  static class Clock extends Ticker {
    long nanos;

    @Override
    public long read() {
      return nanos;
    }
  }

  static Filter cache(int most, Clock clock) {
    Cache<Id, Boolean> ids =
        CacheBuilder.newBuilder().maximumSize(most).expireAfterWrite(1, TimeUnit.HOURS).ticker(clock).build();
    return id -> {
      boolean isContained = ids.getIfPresent(id) != null;
      if (!isContained) ids.put(id, Boolean.TRUE);
      return isContained;
    };
  }

  static long usedHeap() {
    for (int i = 0; i < 3; ++i) System.gc();
    return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
  }

  // Of a filter with an id in each place that is ever filled.
  static double bytesPerId(IntFunction<Filter> make) {
    long before = usedHeap();
    Filter filter = make.apply(SLOTS);
    for (long i = 0; i < 30L * SLOTS; ++i) filter.containsAndAdd(Id.of(i));
    double bytes = (double) (usedHeap() - before) / SLOTS;
    return filter.containsAndAdd(Id.of(0)) ? Double.NaN : bytes;  // it must live until here
  }

  // Each id is sent again when `distance` others have come.
  static double missedShare(Filter filter, long distance) {
    long copies = 0;
    long missed = 0;
    for (long i = 0; i < 3 * distance + 100_000; ++i) {
      filter.containsAndAdd(Id.of(i));
      if (i < distance) continue;
      boolean isMissed = !filter.containsAndAdd(Id.of(i - distance));
      if (i < 3 * distance) continue;  // the first have met fewer
      ++copies;
      missed += isMissed ? 1 : 0;
    }
    return (double) missed / copies;
  }

  public static void main(String[] arguments) {
    Clock clock = new Clock();
    Filter forgets = cache(SLOTS, clock);
    forgets.containsAndAdd(Id.of(1));
    boolean isRemembered = forgets.containsAndAdd(Id.of(1));
    clock.nanos = TimeUnit.HOURS.toNanos(1);
    if (!isRemembered || forgets.containsAndAdd(Id.of(1))) throw new AssertionError("an id is kept for an hour");

    IntFunction<Filter> makeCache = most -> cache(most, new Clock());
    bytesPerId(ExpiringCache::opposite);  // what the start leaves behind goes with the first one
    double slotBytes = bytesPerId(ExpiringCache::opposite);
    double entryBytes = bytesPerId(makeCache);
    int sameMemory = (int) (SLOTS * slotBytes / entryBytes);
    System.out.printf("# ids of 16 bytes; %d ids or slots; Guava's cache: maximumSize, expireAfterWrite of "
        + "an hour%n", SLOTS);
    System.out.println("filter,bytes_per_id,load,missed_share");
    for (double load : new double[] {0.02, 0.1, 0.25, 0.5, 1, 2, 4}) {
      long distance = Math.round(load * SLOTS);
      row("opposite", slotBytes, load, missedShare(opposite(SLOTS), distance));
      row("cache", entryBytes, load, missedShare(makeCache.apply(SLOTS), distance));
      row("cache in the same memory", entryBytes, load, missedShare(makeCache.apply(sameMemory), distance));
    }
  }

  static void row(String filter, double bytes, double load, double missed) {
    System.out.printf(Locale.ROOT, "\"%s\",%.0f,%g,%.5f%n", filter, bytes, load, missed);
  }
}
